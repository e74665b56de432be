// Decoders give back what was encoded, whatever the file is called.
#include "runtime/media/decode.hpp"

#include <cmath>

#include "runtime/media/made_up.hpp"
#include "tests/media/media_fixture.hpp"

namespace tandem {
namespace {

double mean_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(int{a.pixels[i]} - int{b.pixels[i]});
  return sum / static_cast<double>(a.pixels.size());
}

TEST(MediaDecode, PngGivesBackEveryPixel) {
  const Image image = made_up_image(61, 47, 1);
  EXPECT_EQ(decode_png({"a.png", as_png(image)}, {}, 255).pixels, image.pixels);
}

TEST(MediaDecode, JpegGivesBackNearlyEveryPixel) {
  const Image image = made_up_image(61, 47, 1);
  const Image full = decode_jpeg({"a.jpg", as_jpeg(image, 100, Chroma::Full)}, {});
  EXPECT_LT(mean_difference(full, image), 1);
  const Image halved = decode_jpeg({"a.jpg", as_jpeg(image, 90, Chroma::Halved)}, {});
  EXPECT_LT(mean_difference(halved, image), 20);
  EXPECT_NE(halved.pixels, image.pixels);
}

TEST(MediaDecode, SvgIsDrawnAtTheWantedSize) {
  const std::string text =
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10"><rect width="10" height="10" fill="#f00"/></svg>)";
  const Image image = decode_svg({"a.svg", text}, {}, 32, 200);
  ASSERT_EQ(image.height, 32);
  ASSERT_EQ(image.width, 64);
  const auto pixel = [&](std::size_t y, std::size_t x) {
    const auto* p = image.pixels.data() + 3 * (y * 64 + x);
    return std::vector<int>{p[0], p[1], p[2]};
  };
  EXPECT_EQ(pixel(16, 5), (std::vector<int>{255, 0, 0}));
  EXPECT_EQ(pixel(16, 60), (std::vector<int>{200, 200, 200})) << "the background, where nothing is drawn";
}

TEST(MediaDecode, LosslessSoundsGiveBackEverySample) {
  const Sound sound = made_up_sound(22050, 5000, 3);
  for (const SoundFormat format : {SoundFormat::Flac, SoundFormat::Wav}) {
    const Sound back = decode_sound({"a", as_sound_file(sound, format)}, {});
    ASSERT_EQ(back.rate, 22050);
    ASSERT_EQ(back.samples.size(), sound.samples.size());
    for (std::size_t i = 0; i < back.samples.size(); ++i)
      ASSERT_NEAR(back.samples[i], sound.samples[i], 2.0 / 32768) << i;
  }
}

TEST(MediaDecode, VorbisGivesBackTheTones) {
  const Sound sound = made_up_sound(22050, 22050, 3);
  const Sound back = decode_sound({"a", as_sound_file(sound, SoundFormat::Vorbis)}, {});
  ASSERT_EQ(back.samples.size(), sound.samples.size());
  double product = 0, own = 0, others = 0;
  for (std::size_t i = 0; i < back.samples.size(); ++i) {
    product += double{back.samples[i]} * sound.samples[i];
    own += std::pow(back.samples[i], 2);
    others += std::pow(sound.samples[i], 2);
  }
  EXPECT_GT(product / std::sqrt(own * others), 0.98);
}

TEST(MediaDecode, ChannelsBecomeTheirMean) {
  // A WAV of two channels, 16 bits: one frame of 16384 and -8192.
  const std::string wav(
      "RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\1\0\2\0\x40\x1F\0\0\0\x7D\0\0\4\0\x10\0data\4\0\0\0\0\x40\0\xE0", 48);
  const Sound sound = decode_sound({"a.wav", wav}, {});
  EXPECT_EQ(sound.rate, 8000);
  EXPECT_EQ(sound.samples, std::vector<float>{0.125});
}

TEST(MediaDecode, VideoGivesFramesThatMove) {
  if (!decodes_video()) GTEST_SKIP() << "this build decodes no video";
  const MediaFile file{"a.mp4", made_up_video(64, 48, 10, 4)};
  EXPECT_EQ(kind_of(file), MediaKind::Video);
  const Frames all = decode_video(file, {}, {.count = 99, .stride = 1});
  EXPECT_EQ(all.count, 10);
  EXPECT_EQ(all.pixels.size(), 10U * 64 * 48 * 3);
  const Frames some = decode_video(file, {}, {.count = 2, .stride = 3});
  const std::size_t frame = 64 * 48 * 3;
  ASSERT_EQ(some.count, 2);
  EXPECT_TRUE(std::equal(some.pixels.begin() + frame, some.pixels.end(), all.pixels.begin() + 3 * frame));
  EXPECT_FALSE(std::equal(some.pixels.begin(), some.pixels.begin() + frame, some.pixels.begin() + frame));
}

TEST(MediaDecode, KindsAreToldByContent) {
  const Image image = made_up_image(8, 8, 1);
  const Sound sound = made_up_sound(8000, 800, 1);
  EXPECT_EQ(kind_of({"x", as_jpeg(image, 90, Chroma::Full)}), MediaKind::Jpeg);
  EXPECT_EQ(kind_of({"x.jpg", as_png(image)}), MediaKind::Png);
  EXPECT_EQ(kind_of({"x.png", made_up_svg(8, 8, 1, 1)}), MediaKind::Svg);
  EXPECT_EQ(kind_of({"x", "<?xml version='1.0'?>\n<!-- a -->\n<svg/>"}), MediaKind::Svg);
  EXPECT_EQ(kind_of({"x", as_sound_file(sound, SoundFormat::Vorbis)}), MediaKind::Vorbis);
  EXPECT_EQ(kind_of({"x", as_sound_file(sound, SoundFormat::Flac)}), MediaKind::Flac);
  EXPECT_EQ(kind_of({"x", as_sound_file(sound, SoundFormat::Wav)}), MediaKind::Wav);
}

}  // namespace
}  // namespace tandem
