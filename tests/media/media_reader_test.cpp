// The chain from a file to its place in a batch: the same numbers on any thread and from any cache; what is wrong is
// counted, and leaves zeros.
#include "runtime/media/media_reader.hpp"

#include <set>
#include <thread>

#include "runtime/media/made_up.hpp"
#include "tests/media/media_fixture.hpp"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

MediaOptions small_options() {
  MediaOptions options;
  options.picture.side = 16;
  options.picture.cropping = {.random = true, .flip = 0.5};
  options.sound.samples = 1600;
  options.frames = {.count = 2, .stride = 2};
  return options;
}

class MediaReaderTest : public ::testing::Test {
 protected:
  MediaReaderTest() {
    for (std::uint64_t i = 0; i < 8; ++i) {
      const Image image = made_up_image(40, 30, i);
      const std::string name = "picture" + std::to_string(i);
      add(Modality::Image, folder_.write(name, i % 2 == 0 ? as_jpeg(image, 90, Chroma::Halved) : as_png(image)));
      const Sound sound = made_up_sound(22050, 3000, i);
      add(Modality::Audio, folder_.write("sound" + std::to_string(i), as_sound_file(sound, SoundFormat::Flac)));
    }
    add(Modality::Image, folder_.write("drawing", made_up_svg(40, 30, 3, 1)));
    if (decodes_video()) add(Modality::Video, folder_.write("video", made_up_video(64, 48, 5, 1)));
  }
  void add(Modality modality, const std::string& path) {
    MediaItem item;
    item.sample = static_cast<std::int64_t>(items_.size());
    item.modality = modality, item.path = path, item.seed = 77 + items_.size();
    items_.push_back(item);
  }
  std::vector<std::vector<float>> prepared(MediaReader& reader, const std::vector<MediaItem>& items) {
    std::vector<std::vector<float>> all;
    for (const MediaItem& item : items) {
      all.emplace_back(static_cast<std::size_t>(reader.elements_of(item.modality)));
      const auto problem = reader.prepare(item, all.back());
      EXPECT_FALSE(problem) << problem->what;
    }
    return all;
  }

  MediaFolder folder_;
  std::vector<MediaItem> items_;
};

TEST_F(MediaReaderTest, ShapesFollowFromTheOptions) {
  const MediaReader reader(small_options(), nullptr);
  EXPECT_EQ(reader.shape_of(Modality::Image), (std::vector<std::int64_t>{3, 16, 16}));
  EXPECT_EQ(reader.shape_of(Modality::Audio), (std::vector<std::int64_t>{80, 10}));
  EXPECT_EQ(reader.shape_of(Modality::Video), (std::vector<std::int64_t>{2, 3, 16, 16}));
}

TEST_F(MediaReaderTest, CachesAndThreadsChangeNoNumber) {
  MediaReader plain(small_options(), nullptr);
  const auto expected = prepared(plain, items_);
  for (const std::string& place : {std::string(), folder_.path() + "/cache"}) {
    SampleCache cache(1 << 24, place);
    MediaReader reader(small_options(), &cache);
    for (std::size_t i = 0; i < items_.size(); ++i)
      items_[i].keeps_decoded = i % 3 != 0, items_[i].keeps_prepared = i % 3 == 0;
    EXPECT_EQ(prepared(reader, items_), expected);
    EXPECT_EQ(prepared(reader, items_), expected) << "from the cache";
    const auto kept = static_cast<std::int64_t>(items_.size());
    const MediaCounts counts = reader.counts();
    EXPECT_EQ(counts.prepared, 2 * kept);
    EXPECT_EQ(counts.decoded, kept);
    EXPECT_EQ(counts.decoded_hits + counts.prepared_hits, kept);
    EXPECT_GT(counts.prepared_hits, 0);
    std::vector<std::thread> threads;
    std::vector<std::vector<std::vector<float>>> found(4);
    for (auto& all : found) threads.emplace_back([&] { all = prepared(reader, items_); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(found, Each(expected));
  }
}

TEST_F(MediaReaderTest, WhatIsRandomIsOfTheSeed) {
  SampleCache cache(1 << 24, "");
  MediaReader reader(small_options(), &cache);
  MediaItem item = items_.front();
  item.keeps_prepared = true;
  const auto first = prepared(reader, {item});
  item.seed += 1;
  EXPECT_NE(prepared(reader, {item}), first) << "nor is another seed's taken from the cache";
}

TEST_F(MediaReaderTest, FramesOfAClipAreCutAlike) {
  if (!decodes_video()) GTEST_SKIP() << "this build decodes no video";
  MediaOptions options = small_options();
  options.frames.stride = 1;
  MediaReader reader(options, nullptr);
  const MediaFile file = read_media(items_.back().path, {});
  const Frames frames = decode_video(file, {}, options.frames);
  std::set<bool> mirrored;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    MediaItem item = items_.back();
    item.seed = seed;
    std::vector<float> expected(3 * 16 * 16);
    const std::vector<float> clip = prepared(reader, {item}).front();
    const Box box = random_box(frames.frame(0), options.picture.cropping.least_area, seed);
    mirrored.insert(draws_flip(0.5, seed));
    for (std::int32_t i = 0; i < 2; ++i) {
      Image square = resize(frames.frame(i), box, 16);
      if (draws_flip(0.5, seed)) mirror(square);
      normalise(square, options.picture.normal, expected);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), clip.begin() + i * 3 * 16 * 16)) << seed << " " << i;
    }
  }
  EXPECT_EQ(mirrored.size(), 2u) << "both ways round are among the seeds";
}

TEST_F(MediaReaderTest, ABatchIsItsItemsOneAfterAnother) {
  MediaReader reader(small_options(), nullptr);
  std::vector<float> batch(3 * 3 * 16 * 16);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_FALSE(reader.prepare(items_[2 * i], place_of(batch, 3, i)));
  std::vector<float> expected;
  for (const auto& item : prepared(reader, {items_[0], items_[2], items_[4]}))
    expected.insert(expected.end(), item.begin(), item.end());
  EXPECT_EQ(batch, expected);
}

TEST_F(MediaReaderTest, WhatIsWrongIsCountedAndLeavesZeros) {
  MediaReader reader(small_options(), nullptr);
  const auto check = [&](const std::string& path, MediaFault fault, const std::string& what) {
    MediaItem item = items_.front();
    item.path = path;
    std::vector<float> out(3 * 16 * 16, 5.0F);
    const auto problem = reader.prepare(item, out);
    ASSERT_TRUE(problem) << path;
    EXPECT_EQ(problem->fault, fault);
    EXPECT_THAT(problem->what, HasSubstr(path));
    EXPECT_THAT(problem->what, HasSubstr(what));
    EXPECT_THAT(out, Each(0.0F));
    EXPECT_EQ(reader.counts().skipped[static_cast<std::size_t>(fault)], 1);
  };
  check(folder_.path() + "/none", MediaFault::Unreadable, "cannot be opened");
  check(folder_.write("empty", ""), MediaFault::Empty, "is empty");
  check(folder_.write("cut", as_png(made_up_image(9, 9, 1)).substr(0, 60)), MediaFault::Damaged, "ends too early");
  check(items_[1].path, MediaFault::UnknownKind, "is flac; allowed: a JPEG, PNG or SVG");
  EXPECT_EQ(reader.counts().prepared, 0);
}

TEST_F(MediaReaderTest, AVideoThatIsTooShortIsRefused) {
  if (!decodes_video()) GTEST_SKIP() << "this build decodes no video";
  MediaOptions options = small_options();
  options.frames = {.count = 4, .stride = 2};
  MediaReader reader(options, nullptr);
  std::vector<float> out(static_cast<std::size_t>(reader.elements_of(Modality::Video)));
  const auto problem = reader.prepare(items_.back(), out);
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->what, HasSubstr("gives 3 frames; allowed: at least 4, one of 2"));
}

}  // namespace
}  // namespace tandem
