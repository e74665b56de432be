// What is cut out of a picture of a batch: of the seed, the sample and its use alone, however a step is cut and whoever
// decodes; and what is held out is the middle.
#include <bit>

#include "core/samples/sample_order.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/media/made_up.hpp"
#include "runtime/sample_data.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/media/media_fixture.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kSamples = 13, kRows = 12, kSide = 24, kItemBytes = kSide * kSide * 3;
constexpr Cropping kRandom{.random = true, .least_area = 0.2, .flip = 0.5};
using Bytes = std::vector<std::byte>;

class SampleCrops : public ::testing::Test {
 protected:
  SampleCrops() {
    std::string rows = "sample,image,text\n";
    for (std::int64_t i = 0; i < kSamples; ++i) {
      const std::string name = "p" + std::to_string(i);
      const Image image = made_up_image(40 + 3 * static_cast<std::int32_t>(i), 33, static_cast<std::uint64_t>(i));
      folder_.write(name, as_png(image));
      rows += name + "," + name + "," + (i % 2 == 0 ? "even" : "odd") + "\n";
      images_.push_back(image);
    }
    scenario_.machine = testing::round_machine(std::int64_t{1} << 30);
    scenario_.path = folder_.path() + "/scenario.yaml";
    scenario_.data_manifest = folder_.write("all.csv", rows);
    scenario_.pipeline.given = true;
    scenario_.pipeline.cropping["image"] = kRandom;
    scenario_.seed = 9;
    set_family("vit");
    cut(kRows, 1, 1);
  }
  void set_family(const std::string& family) {
    scenario_.workload.family = family;
    scenario_.workload.keys = find_workload(family)->keys->small_instance();
    scenario_.workload = completed(scenario_.workload);
  }
  void cut(std::int64_t batch, std::int64_t micro_batches, std::int64_t ranks) {
    scenario_.workload.batch = batch;
    scenario_.workload.micro_batches = micro_batches;
    scenario_.workload.devices = ranks;
  }
  // All pictures of a step, in order.
  Bytes decoded(std::int32_t step, bool held_out = false) const {
    const SampleData data(scenario_);
    const std::int64_t batch = scenario_.workload.batch;
    const MediaShape shape{Modality::Image, {batch, 3, kSide, kSide}, batch, kItemBytes};
    Bytes all;
    for (std::int32_t m = 0; m < scenario_.workload.micro_batches; ++m)
      for (std::int32_t rank = 0; rank < scenario_.workload.devices; ++rank) {
        Bytes some(static_cast<std::size_t>(batch * kItemBytes));
        data.decode({step, m, rank, held_out}, shape, 0, batch, some.data());
        all.insert(all.end(), some.begin(), some.end());
      }
    return all;
  }
  static void append(Bytes& to, const Image& image) {
    const auto bytes = std::as_bytes(std::span(image.pixels));
    to.insert(to.end(), bytes.begin(), bytes.end());
  }

  MediaFolder folder_;
  std::vector<Image> images_;
  Scenario scenario_;
};

TEST_F(SampleCrops, AreOfTheSeedTheSampleAndItsUseAlone) {
  for (const std::int32_t step : {0, 3}) {
    Bytes expected;
    for (std::int64_t i = 0; i < kRows; ++i) {
      const std::int64_t place = step * kRows + i, sample = sample_at(scenario_.seed, kSamples, place);
      const std::uint64_t seed = seed_of_use(scenario_.seed, sample, place / kSamples, 0);
      append(expected, cropped(images_[static_cast<std::size_t>(sample)], kRandom, seed, kSide));
    }
    constexpr std::int64_t kCuts[][3] = {{12, 1, 1}, {4, 3, 1}, {1, 12, 1}, {2, 3, 2}};
    for (const auto& [batch, micro_batches, ranks] : kCuts)
      for (const std::int64_t workers : {1, 3}) {
        cut(batch, micro_batches, ranks);
        scenario_.pipeline.workers = workers;
        EXPECT_EQ(decoded(step), expected) << micro_batches << " of " << batch << " on " << ranks << ", step " << step;
      }
  }
}

TEST_F(SampleCrops, EachUseHasAnother) {
  cut(kSamples, 1, 1);
  const auto by_sample = [&](std::int32_t step) {
    const Bytes all = decoded(step);
    std::vector<Bytes> out(kSamples);
    for (std::int64_t i = 0; i < kSamples; ++i)
      out[static_cast<std::size_t>(sample_at(scenario_.seed, kSamples, step * kSamples + i))] =
          Bytes(all.begin() + i * kItemBytes, all.begin() + (i + 1) * kItemBytes);
    return out;
  };
  const auto random_first = by_sample(0), random_next = by_sample(1);
  scenario_.pipeline.cropping.clear();
  const auto first = by_sample(0), next = by_sample(1);
  EXPECT_EQ(first, next);
  for (std::size_t i = 0; i < kSamples; ++i) {
    EXPECT_NE(random_first[i], random_next[i]) << i;
    EXPECT_NE(random_first[i], first[i]) << i;
  }
}

TEST_F(SampleCrops, WhatIsHeldOutIsTheMiddle) {
  scenario_.validation = {.every = 1, .batches = 1, .fraction = 0.3};
  cut(3, 1, 1);
  Bytes middle;
  for (std::size_t i = kSamples - 3; i < kSamples; ++i) append(middle, cropped(images_[i], {}, 0, kSide));
  for (const std::int32_t step : {0, 5}) EXPECT_EQ(decoded(step, true), middle) << step;
  const Bytes random = decoded(0);
  scenario_.pipeline.cropping.clear();
  EXPECT_EQ(decoded(0, true), middle);
  EXPECT_NE(decoded(0), random) << "what is trained on is not";
}

TEST_F(SampleCrops, AWorkerMakesWhatARequestSays) {
  scenario_.pipeline.cropping.clear();  // its scenario may be another
  scenario_.seed = 1;
  const SampleData data(scenario_);
  DecodeRequest request{Modality::Image, kSide, kItemBytes, kRandom, {4, 4, 11}, {}, {-5, 6, 7}};
  Bytes expected;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto sample = static_cast<std::size_t>(request.samples[i]);
    const std::string path = folder_.path() + "/p" + std::to_string(sample);
    request.file_bytes.push_back(static_cast<std::int64_t>(std::filesystem::file_size(path)));
    append(expected, cropped(images_[sample], kRandom, std::bit_cast<std::uint64_t>(request.seeds[i]), kSide));
  }
  Bytes made(expected.size());
  data.serve(request, made.data());
  EXPECT_EQ(made, expected);
}

TEST_F(SampleCrops, FramesOfAClipAreCutAlike) {
  if (!decodes_video()) GTEST_SKIP() << "this build decodes no video";
  const std::string path = folder_.write("clip", made_up_video(64, 48, 5, 1));
  scenario_.data_manifest = folder_.write("clips.csv", "sample,video,text\na,clip,a clip\nb,clip,a clip\n");
  set_family("trimodal");
  cut(2, 1, 1);
  const SampleData data(scenario_);
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  for (std::int64_t seed = 0; seed < 6; ++seed) {
    Bytes expected, made(3 * kItemBytes);
    const Frames frames = decode_video(read_media(path, {}), {}, {3, 1});
    for (std::int32_t i = 0; i < 3; ++i)
      append(expected, cropped(frames.frame(i), kRandom, static_cast<std::uint64_t>(seed), kSide));
    data.serve({Modality::Video, kSide, 3 * kItemBytes, kRandom, {1}, {bytes}, {seed}}, made.data());
    EXPECT_EQ(made, expected) << seed;
  }
}

}  // namespace
}  // namespace tandem
