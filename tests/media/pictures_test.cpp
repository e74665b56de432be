// Cutting, scaling, mirroring and normalising, where the result is known. (tests/scripts/media.py compares with
// Pillow.)
#include "runtime/media/pictures.hpp"

#include "runtime/media/made_up.hpp"
#include "tests/media/media_fixture.hpp"

namespace tandem {
namespace {

Box all_of(const Image& image) { return {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)}; }

TEST(MediaPictures, TheSameSizeIsTheSamePicture) {
  const Image image = made_up_image(31, 31, 1);
  EXPECT_EQ(resize(image, all_of(image), 31).pixels, image.pixels);
}

TEST(MediaPictures, HalvesAreMeansUnderATriangle) {
  // Of 4 pixels 2 are made: support 2, centres 1 and 3. Weights of the first: 5/8... of pixels at 0.5, 1.5, 2.5 away
  // 0.5, 0.5, 1.5: (1 - 0.25, 1 - 0.25, 1 - 0.75) / 1.75 = 3/7, 3/7, 1/7.
  Image image{4, 4, {}};
  for (int y = 0; y < 4; ++y)
    for (const int x : {0, 70, 140, 210})
      for (int c = 0; c < 3; ++c) image.pixels.push_back(static_cast<std::uint8_t>(x));
  const Image half = resize(image, all_of(image), 2);
  EXPECT_EQ(half.pixels[0], 50);   // (3 * 0 + 3 * 70 + 140) / 7
  EXPECT_EQ(half.pixels[3], 160);  // (70 + 3 * 140 + 3 * 210) / 7
}

TEST(MediaPictures, ABoxIsCutOut) {
  const Image image = made_up_image(40, 30, 2);
  const Image part = resize(image, {10, 5, 8, 8}, 8);
  for (std::size_t y = 0; y < 8; ++y)
    for (std::size_t x = 0; x < 24; ++x)
      ASSERT_EQ(part.pixels[y * 24 + x], image.pixels[(y + 5) * 120 + 30 + x]) << "weights are 1 at the scale 1";
}

TEST(MediaPictures, CentreSquare) {
  const Box box = centre_square(Image{30, 41, {}});
  EXPECT_EQ(box.left, 5);
  EXPECT_EQ(box.top, 0);
  EXPECT_EQ(box.width, 30);
  EXPECT_EQ(box.height, 30);
}

TEST(MediaPictures, RandomBoxesAreOfTheSeedAndWithinBounds) {
  const Image image{300, 400, {}};
  double least = 1, most = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Box box = random_box(image, 0.08, seed), again = random_box(image, 0.08, seed);
    ASSERT_EQ(box.left, again.left);
    ASSERT_EQ(box.width, again.width);
    ASSERT_GE(box.left, 0);
    ASSERT_GE(box.top, 0);
    ASSERT_LE(box.left + box.width, 400);
    ASSERT_LE(box.top + box.height, 300);
    ASSERT_NEAR(box.width / box.height, 1, 0.36);
    const double share = box.width * box.height / (300 * 400);
    least = std::min(least, share), most = std::max(most, share);
  }
  EXPECT_NEAR(least, 0.08, 0.01);
  EXPECT_GT(most, 0.9);
}

TEST(MediaPictures, AThinPictureGivesASquareInItsMiddle) {
  const Box box = random_box(Image{1, 1000, {}}, 0.08, 5);
  EXPECT_EQ(box.width, 1);
  EXPECT_EQ(box.height, 1);
}

TEST(MediaPictures, WhereNothingFitsThePartInTheMiddleHasTheSidesThatAreAllowed) {
  // As torchvision's: all of the width, 30 / (3/4) rows, from (90 - 40) / 2 on.
  const Box tall = random_box(Image{90, 30, {}}, 1, 5);
  EXPECT_EQ(tall.width, 30);
  EXPECT_EQ(tall.height, 40);
  EXPECT_EQ(tall.top, 25);
  const Box wide = random_box(Image{30, 90, {}}, 1, 5);
  EXPECT_EQ(wide.width, 40);
  EXPECT_EQ(wide.left, 25);
  EXPECT_EQ(wide.height, 30);
}

TEST(MediaPictures, SharesOfTheAreaAreThoseOfTheFormula) {
  const Image image{400, 400, {}};
  double least = 1, sum = 0;
  constexpr int kSeeds = 4000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Box box = random_box(image, 0.4, seed);
    const double share = box.width * box.height / (400 * 400);
    least = std::min(least, share), sum += share;
  }
  EXPECT_NEAR(least, 0.4, 0.01);
  // A share a is drawn evenly from 0.4 to 1 and fits a square with probability min(1, ln(1 / a) / ln(4 / 3)). The mean
  // of what fits: (0.20125 + 0.09895) / (0.35 + 0.11902), below and above 3/4. Four standard deviations are 0.009.
  EXPECT_NEAR(sum / kSeeds, 0.640, 0.01);
}

TEST(MediaPictures, AsManyAreMirroredAsTheProbabilitySays) {
  const auto mirrored_at = [](double probability) {
    int mirrored = 0;
    for (std::uint64_t seed = 0; seed < 10000; ++seed) mirrored += draws_flip(probability, seed) ? 1 : 0;
    return mirrored;
  };
  EXPECT_EQ(mirrored_at(0), 0);
  EXPECT_EQ(mirrored_at(1), 10000);
  EXPECT_NEAR(mirrored_at(0.5), 5000, 200);  // four standard deviations
  EXPECT_NEAR(mirrored_at(0.1), 1000, 120);
  Image image{1, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  mirror(image);
  EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{7, 8, 9, 4, 5, 6, 1, 2, 3}));
}

TEST(MediaPictures, CroppedIsCutScaledAndMirrored) {
  const Image image = made_up_image(40, 30, 4);
  const Image middle = resize(image, centre_square(image), 12);
  EXPECT_EQ(cropped(image, {}, 7, 12).pixels, middle.pixels) << "the seed is of what is random alone";
  Image other = middle;
  mirror(other);
  EXPECT_EQ(cropped(image, {.flip = 1}, 7, 12).pixels, other.pixels);
  EXPECT_EQ(cropped(image, {.random = true}, 7, 12).pixels, resize(image, random_box(image, 0.08, 7), 12).pixels);
}

TEST(MediaPictures, NormaliseMakesPlanes) {
  const Image image{1, 2, {0, 51, 255, 255, 0, 102}};
  std::vector<float> out(6);
  normalise(image, {{0.5, 0, 0}, {0.5, 1, 2}}, out);
  const std::vector<float> expected = {-1, 1, 0.2F, 0, 0.5F, 0.2F};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(out[i], expected[i], 1e-6) << i;
}

}  // namespace
}  // namespace tandem
