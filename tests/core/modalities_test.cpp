// Networks of several modalities: modules by modality in their order, encoders that do not wait for each other, and
// sizes by the counts of a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/base/errors.hpp"
#include "core/workloads/workload.hpp"
#include "tests/core/workload_fixture.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;

Scenario scenario_of(const std::string& family) {
  Scenario s = small_scenario("gpt");
  s.workload.family = family;
  s.workload.keys = find_workload(family)->keys->small_instance();
  s.workload.batch = 3;
  return s;
}

std::map<std::string, Shape> batch_of(const Network& network) {
  std::map<std::string, Shape> shapes;
  for (const BatchTensor& tensor : network.batch) shapes.emplace(tensor.name, tensor.shape);
  return shapes;
}

std::vector<std::string> names_of(const Network& network) {
  std::vector<std::string> names;
  for (const NetworkModule& m : network.modules) names.push_back(m.name);
  return names;
}

std::string error_of(const Scenario& scenario) {
  try {
    network_of(scenario);
    return "accepted";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(Modalities, ModulesAreNamedByModality) {
  EXPECT_THAT(names_of(network_of(scenario_of("multimodal_llm"))),
              ::testing::ElementsAre(
                  "image_encoder_patches", "image_encoder0", "image_encoder1", "image_encoder_output", "image_aligner",
                  "audio_encoder_frames", "audio_encoder_positions", "audio_encoder0", "audio_encoder1",
                  "audio_encoder_output", "audio_aligner", "text_embedding", "fuse", "backbone0", "backbone1", "head"));
  EXPECT_THAT(
      names_of(network_of(scenario_of("trimodal"))),
      ::testing::ElementsAre("image_encoder_patches", "image_encoder0", "image_encoder1", "image_encoder_output",
                             "image_aligner", "audio_encoder_frames", "audio_encoder_positions", "audio_encoder0",
                             "audio_encoder1", "audio_encoder_output", "audio_aligner", "text_encoder_embedding",
                             "text_encoder0", "text_encoder1", "text_encoder_output", "text_aligner", "head"));
}

// A module of one modality reads none of another before they are fused.
TEST(Modalities, EncodersAreBranchesOfTheirOwn) {
  for (const char* family : {"trimodal", "multimodal_llm"}) {
    Scenario s = scenario_of(family);
    if (s.workload.family == "multimodal_llm") s.workload.keys["video_frames"] = 2;
    const Network network = network_of(s);
    const auto modality = [](const std::string& name) { return name.substr(0, name.find('_')); };
    int read = 0;
    for (const NetworkModule& m : network.modules) {
      if (m.name.find("_encoder") == std::string::npos && m.name.find("_aligner") == std::string::npos) continue;
      for (const Source& source : m.inputs)
        if (source.from != Source::From::Batch) {
          EXPECT_EQ(modality(network.modules[static_cast<std::size_t>(source.index)].name), modality(m.name)) << m.name;
          ++read;
        }
    }
    EXPECT_GE(read, 12);
  }
}

TEST(Modalities, SizesFollowCounts) {
  Scenario s = scenario_of("multimodal_llm");
  s.workload.trained = {"backbone*"};
  s.workload.items = {{"image", 5}, {"image_cached", 3}, {"audio", 2}, {"audio_cached", 2}};
  const Network network = network_of(s);
  const std::map<std::string, Shape> batch = batch_of(network);
  // 16 patches of 24 x 24 pixels, of width 36; 10 positions averaged in pairs, of width 40.
  EXPECT_EQ(batch.at("images"), Shape({2, 3, 24, 24}, DType::F32));
  EXPECT_EQ(batch.at("image_features"), Shape({3 * 16, 36}, DType::F32));
  EXPECT_EQ(batch.at("mels"), Shape({1, 10, 20}, DType::F32));  // a blank
  EXPECT_EQ(batch.at("audio_features"), Shape({2 * 5, 40}, DType::F32));
  for (const BatchTensor& tensor : network.batch)
    if (tensor.name == "fused_rows") {
      EXPECT_EQ(tensor.shape, Shape({3 * 37}, DType::I64));
      EXPECT_EQ(tensor.below, 3 * 37 + 5 * 16 + (1 + 2) * 5);
    }
}

TEST(Modalities, PairsAreCounted) {
  Scenario s = scenario_of("trimodal");
  s.workload.items = {{"image", 2}, {"audio", 1}, {"text", 6}, {"image_text", 4}};
  const std::map<std::string, Shape> batch = batch_of(network_of(s));
  EXPECT_EQ(batch.at("images"), Shape({2, 3, 24, 24}, DType::F32));
  EXPECT_EQ(batch.at("tokens"), Shape({6, 13}, DType::I64));
  EXPECT_EQ(batch.at("image_text_a"), Shape({4}, DType::I64));
  EXPECT_EQ(batch.at("audio_text_b"), Shape({3}, DType::I64));
  EXPECT_EQ(batch.at("image_audio_count"), Shape({1}, DType::I64));
}

TEST(Modalities, CountsThatCannotBeAreRefused) {
  Scenario s = scenario_of("multimodal_llm");
  const auto with = [&](std::map<std::string, std::int64_t> items) {
    s.workload.items = std::move(items);
    return error_of(s);
  };
  EXPECT_THAT(with({{"image", 0}}), HasSubstr("workload.items.image: missing; allowed: 1 to"));
  EXPECT_THAT(with({{"image", 2}, {"image_cached", 3}}),
              HasSubstr("workload.items.image_cached: 3 is out of range; allowed: 0 to 2, the items of a micro-batch"));
  EXPECT_THAT(with({{"images", 2}}), HasSubstr("workload.items.images: is nothing that this family counts; allowed: "
                                               "image, image_cached, audio"));
  EXPECT_THAT(with({{"image_cached", 1}}),
              HasSubstr("workload.items.image_cached: features of a cache are those of an encoder that stays as it is, "
                        "and image_encoder_patches is trained; allowed: 0, or workload.trained without"));
  s.workload.trained = {"backbone*"};
  EXPECT_EQ(with({{"image_cached", 1}}), "accepted");
}

}  // namespace
}  // namespace tandem
