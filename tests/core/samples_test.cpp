// Which samples a step has, what each has, and which items are kept: numbers that both worlds go by.
#include "core/samples/samples.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>

#include "core/base/errors.hpp"
#include "core/samples/sample_order.hpp"
#include "core/workloads/sample_plan.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;

TEST(SampleOrder, EachEpochHasEachSampleOnceInAnOrderOfItsOwn) {
  for (const std::int64_t samples : {1, 2, 3, 7, 64, 925, 1000}) {
    std::vector<std::int64_t> first, second;
    for (std::int64_t i = 0; i < samples; ++i) {
      first.push_back(sample_at(5, samples, i));
      second.push_back(sample_at(5, samples, samples + i));
    }
    EXPECT_EQ(std::set(first.begin(), first.end()).size(), static_cast<std::size_t>(samples)) << samples;
    EXPECT_EQ(std::set(second.begin(), second.end()).size(), static_cast<std::size_t>(samples)) << samples;
    EXPECT_EQ(*std::max_element(first.begin(), first.end()), samples - 1);
    EXPECT_TRUE(samples <= 7 || first != second) << samples;
  }
}

Scenario scenario_of(std::int64_t batch, std::int64_t micro_batches) {
  Scenario s;
  s.workload.batch = batch;
  s.workload.micro_batches = micro_batches;
  s.seed = 3;
  return s;
}

TEST(Samples, SharesFollowTheMix) {
  Scenario s = scenario_of(64, 1);
  s.workload.mix.points = {{0, {{"image", 0.25}, {"audio", 0}}}, {100, {{"image", 0.75}, {"audio", 1}}}};
  const auto share = [&](const Samples& samples, Modality modality, std::int64_t first, std::int64_t last) {
    std::int64_t has = 0;
    for (std::int64_t step = first; step < last; ++step)
      for (const SampleUse& row : samples.of({step, 0, 0})) has += row.has.has(modality);
    return static_cast<double>(has) / static_cast<double>(64 * (last - first));
  };
  const Samples phases(s, nullptr);
  EXPECT_NEAR(share(phases, Modality::Image, 0, 100), 0.25, 0.02);
  EXPECT_NEAR(share(phases, Modality::Image, 100, 200), 0.75, 0.02);
  EXPECT_EQ(share(phases, Modality::Audio, 0, 100), 0);
  EXPECT_EQ(share(phases, Modality::Audio, 100, 200), 1);
  EXPECT_EQ(share(phases, Modality::Video, 0, 100), 1) << "what the mix does not name all samples have";
  s.workload.mix.drifts = true;
  EXPECT_NEAR(share(Samples(s, nullptr), Modality::Image, 40, 60), 0.5, 0.03) << "half way";
}

TEST(Samples, AStepHasTheSameOnesHoweverItIsCut) {
  const auto all = [](std::int64_t batch, std::int64_t micro_batches, std::int64_t ranks) {
    Scenario s = scenario_of(batch, micro_batches);
    s.workload.devices = ranks;
    s.workload.mix.points = {{0, {{"image", 0.5}}}};
    const Samples samples(s, nullptr);
    std::vector<std::pair<std::int64_t, bool>> rows;
    for (std::int32_t mb = 0; mb < micro_batches; ++mb)
      for (std::int32_t rank = 0; rank < ranks; ++rank)
        for (const SampleUse& row : samples.of({7, mb, rank}))
          rows.emplace_back(row.sample, row.has.has(Modality::Image));
    return rows;
  };
  EXPECT_EQ(all(12, 1, 1), all(4, 3, 1));
  EXPECT_EQ(all(12, 1, 1), all(2, 3, 2));
}

TEST(Samples, AUseIsAnEpoch) {
  Scenario s = scenario_of(4, 3);
  s.pipeline.samples = 6;  // two epochs a step
  const Samples samples(s, nullptr);
  std::map<std::int64_t, std::set<std::int64_t>> uses;
  for (std::int64_t step = 0; step < 2; ++step)
    for (std::int32_t mb = 0; mb < 3; ++mb)
      for (const SampleUse& row : samples.of({step, mb, 0}))
        EXPECT_TRUE(uses[row.sample].insert(row.use).second) << "the same use of sample " << row.sample << " twice";
  EXPECT_EQ(uses.size(), 6u);
  for (const auto& [sample, of] : uses) EXPECT_EQ(of, (std::set<std::int64_t>{0, 1, 2, 3})) << sample;
  for (const SampleUse& row : samples.of({.held_out = true})) EXPECT_EQ(row.use, kNone);
}

TEST(Samples, SeedsOfUsesDifferInEachPart) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    for (std::int64_t sample = 0; sample < 8; ++sample)
      for (std::int64_t use = 0; use < 8; ++use)
        for (std::int64_t item = 0; item < 3; ++item) seeds.insert(seed_of_use(seed, sample, use, item));
  EXPECT_EQ(seeds.size(), 4u * 8 * 8 * 3);
}

TEST(Samples, CountsArePaddedAndNeverNone) {
  Scenario s = scenario_of(16, 2);
  s.workload.mix.points = {{0, {{"image", 0}, {"audio", 0.4}}}};
  const auto items = Samples(s, nullptr).items(0);
  EXPECT_EQ(items.at("image"), 1) << "a blank";
  EXPECT_EQ(items.at("image_audio"), 1);
  EXPECT_EQ(items.at("audio") % 2, 0) << "padded to an eighth of the batch";
  EXPECT_EQ(items.at("audio"), items.at("audio_text")) << "each sample has a text";
}

TEST(KeptItems, WhatComesFirstIsKeptAsLongAsThereIsRoom) {
  Scenario s = scenario_of(4, 1);
  s.pipeline.samples = 12;  // three steps an epoch
  const auto samples = std::make_shared<const Samples>(s, nullptr);
  const KeptItems kept(samples, Modality::Image, /*capacity=*/6, /*first_step=*/0, /*delay=*/3, 0);
  std::set<std::int64_t> slots;
  for (std::int64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(kept.counts(step).read, 0) << "none comes twice in an epoch";
    for (const SampleUse& row : samples->of({step, 0, 0}))
      if (const std::int64_t slot = kept.kept_by(row.sample, step); slot != kNone) slots.insert(slot);
  }
  EXPECT_EQ(slots, (std::set<std::int64_t>{0, 1, 2, 3, 4, 5}));
  std::int64_t read = 0, made = 0;
  for (std::int64_t step = 6; step < 9; ++step) read += kept.counts(step).read, made += kept.counts(step).made;
  EXPECT_EQ(read, 6) << "of an epoch's twelve, those that are kept";
  EXPECT_EQ(made, 6);
}

TEST(KeptItems, AStepReadsNothingThatMayNotBeThereYet) {
  Scenario s = scenario_of(4, 1);
  s.pipeline.samples = 4;  // the same four in every step
  const auto samples = std::make_shared<const Samples>(s, nullptr);
  const KeptItems kept(samples, Modality::Image, 100, 0, 3, 0);
  for (std::int64_t step = 0; step < 3; ++step) EXPECT_EQ(kept.counts(step).made, 4) << step;
  EXPECT_EQ(kept.counts(3).made, 0);
  EXPECT_EQ(kept.counts(3).read, 4);
}

// What planning of a family's small network with these croppings and a cache of decoded items refuses.
std::string refusal_of(const std::string& family, const std::map<std::string, Cropping>& cropping) {
  Scenario s = scenario_of(2, 1);
  s.machine = testing::round_machine(std::int64_t{1} << 30);
  s.workload.family = family;
  s.workload.keys = find_workload(family)->keys->small_instance();
  s.workload = completed(s.workload);
  s.pipeline.given = true;
  s.pipeline.decoded_cache_bytes = 1 << 20;
  s.pipeline.cropping = cropping;
  try {
    const SamplePlan plan(*find_workload(family), s, 0);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SamplePlan, ACacheOfDecodedItemsIsRefusedBesideWhatVaries) {
  EXPECT_EQ(refusal_of("vit", {{"image", {}}}), "accepted");
  EXPECT_EQ(
      refusal_of("vit", {{"image", {.random = true}}}),
      "data.pipeline.cache.decoded, pipeline.image.crop: cache.decoded keeps items as they were cut and scaled, and "
      "image.crop: random cuts another part at each use; allowed: crop: centre, or no cache.decoded");
  EXPECT_EQ(
      refusal_of("vit", {{"image", {.flip = 0.1}}}),
      "data.pipeline.cache.decoded, pipeline.image.flip: cache.decoded keeps items as they were cut and scaled, and "
      "image.flip mirrors some of them at each use; allowed: flip: 0, or no cache.decoded");
  EXPECT_EQ(refusal_of("whisper", {{"image", {.random = true}}}), "accepted") << "it reads no pictures";
  EXPECT_THAT(refusal_of("trimodal", {{"image", {.random = true}}}), HasSubstr("image.crop: random"));
}

class ManifestFile : public ::testing::Test {
 protected:
  std::string written(const std::string& text) {
    const std::string path =
        ::testing::TempDir() + "manifest_" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv";
    std::ofstream(path) << text;
    return path;
  }
  std::string refusal(const std::string& text) {
    try {
      read_sample_manifest(written(text));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(ManifestFile, CellsMayBeQuotedAndEmpty) {
  const SampleManifest manifest =
      read_sample_manifest(written("sample,image,text,audio\r\n"
                                   "a,a.png,\"one, two\nand \"\"three\"\"\",\r\n"
                                   "b,,a sound,/abs/b.ogg\r\n"));
  ASSERT_EQ(manifest.rows.size(), 2u);
  EXPECT_EQ(manifest.rows[0].text, "one, two\nand \"three\"");
  EXPECT_EQ(manifest.rows[0].file(Modality::Image), ::testing::TempDir() + "a.png") << "beside the manifest";
  EXPECT_FALSE(manifest.rows[0].modalities().has(Modality::Audio));
  EXPECT_EQ(manifest.rows[1].file(Modality::Audio), "/abs/b.ogg");
}

TEST_F(ManifestFile, WhatIsWrongIsToldWithItsPlace) {
  EXPECT_THAT(refusal(""), HasSubstr(":1:1: no line names the columns"));
  EXPECT_THAT(refusal("sample,picture\na,b\n"), HasSubstr(":1:8: \"picture\" is no column; allowed: sample, image"));
  EXPECT_THAT(refusal("sample,image,image\n"), HasSubstr(":1:14: \"image\" stands twice"));
  EXPECT_THAT(refusal("image\nx.png\n"), HasSubstr("no column is called sample"));
  EXPECT_THAT(refusal("sample,text\na\n"), HasSubstr(":2:1: 1 cells; allowed: 2"));
  EXPECT_THAT(refusal("sample,text\na,x\na,y\n"), HasSubstr(":3:1: sample \"a\" stands twice"));
  EXPECT_THAT(refusal("sample,image\na,\n"), HasSubstr(":2:1: sample \"a\" has nothing"));
  EXPECT_THAT(refusal("sample,text\na,\"x\n"), HasSubstr(":2:3: a quoted cell has no end"));
  EXPECT_THAT(refusal("sample,text\na,\"x\"y\n"), HasSubstr(":2:6: text behind a quoted cell"));
  EXPECT_THAT(refusal("sample,text\n"), HasSubstr("no sample"));
}

}  // namespace
}  // namespace tandem
