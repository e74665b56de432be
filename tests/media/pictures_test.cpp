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
    const Box box = random_box(image, seed), again = random_box(image, seed);
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
  const Box box = random_box(Image{1, 1000, {}}, 5);
  EXPECT_EQ(box.width, 1);
  EXPECT_EQ(box.height, 1);
}

TEST(MediaPictures, OneOfTwoIsMirrored) {
  int mirrored = 0;
  for (std::uint64_t seed = 0; seed < 10000; ++seed) mirrored += draws_flip(seed) ? 1 : 0;
  EXPECT_NEAR(mirrored, 5000, 200);  // four standard deviations
  Image image{1, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  mirror(image);
  EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{7, 8, 9, 4, 5, 6, 1, 2, 3}));
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
