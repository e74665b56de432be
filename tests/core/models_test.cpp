// Models by name have as many parameters as were published.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/run/load.hpp"
#include "core/scenario/dirs.hpp"
#include "core/workloads/workload.hpp"
#include "core/yaml/yaml_tree.hpp"
#include "tests/common/source_dir.hpp"
#include "tests/core/published_configs.hpp"

namespace tandem {
namespace {

std::int64_t parameters_of(const Network& network) {
  std::int64_t count = 0;
  for (const NetworkModule& module : network.modules) {
    for (const bool trained : {true, false}) {
      const auto layout = layout_of(*module.module, trained);  // Named: it must outlive the range over its fields.
      for (const Field& field : layout->fields) count += field.elements();
    }
  }
  return count;
}

std::int64_t number_at(const Node& tree, const char* key, std::int64_t otherwise) {
  const Node* node = tree.find(key);
  return node == nullptr ? otherwise : std::stoll(node->text);
}

Network network_from(const std::string& workload) {
  return network_of(
      parse_scenario("machine: h100\nworkload: " + workload + "\npolicy: {name: resident}\n", "named.yaml"));
}

class NamedModel : public testing::TestWithParam<std::string> {};

TEST_P(NamedModel, HasThePublishedParameters) {
  const std::string path = source_path("models/") + GetParam() + ".yaml";
  const Node model = read_yaml(read_text_file(path), path);
  ASSERT_NE(model.find("parameters"), nullptr);
  ASSERT_NE(model.find("source"), nullptr);
  const Scenario scenario =
      parse_scenario("machine: h100\nworkload: {model: " + GetParam() + "}\npolicy: {name: resident}\n", "named.yaml");
  std::int64_t count = parameters_of(network_of(scenario));
  if (const Node* left_out = model.find("left_out"))
    for (const Entry& entry : left_out->entries) count += std::stoll(entry.value.text);
  const std::int64_t published = number_at(model, "parameters", 0), unit = number_at(model, "rounded_to", 1);
  EXPECT_LE(std::abs(count - published), unit / 2) << count << " and " << published;
}

INSTANTIATE_TEST_SUITE_P(All, NamedModel, testing::ValuesIn(yaml_stems(source_path("models"))), name_of_test);

// A config.json as it is published beside a model's weights (tests/data/configs).
class Config : public testing::TestWithParam<std::string> {};

TEST_P(Config, GivesTheModelOfItsName) {
  const std::string path = source_path("tests/data/configs/") + GetParam() + ".json";
  const Network read = network_from("{config: " + path + ", batch: 1}");
  const Network named = network_from("{model: " + GetParam() + ", batch: 1}");
  EXPECT_EQ(parameters_of(read), parameters_of(named));
  EXPECT_EQ(read.modules.size(), named.modules.size());
}

TEST(Config, AFieldThatCannotBeHonouredIsNamed) {
  const auto error_of = [](const std::string& from, const std::string& to) {
    std::string text = read_text_file(source_path("tests/data/configs/llama-3-8b.json"));
    text.replace(text.find(from), from.size(), to);
    const std::string path = testing::TempDir() + "config.json";
    std::ofstream(path) << text;
    try {
      network_from("{config: " + path + "}");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(error_of("\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"linear\"}"),
              testing::HasSubstr("config.json:20:19: rope_scaling: is a map, which cannot be honoured; allowed: null"));
  EXPECT_THAT(error_of("\"silu\"", "\"swiglu\""),
              testing::HasSubstr("hidden_act: the text 'swiglu' cannot be honoured; allowed: silu, swish, gelu"));
  EXPECT_THAT(error_of("\"use_cache\"", "\"qk_norm\""), testing::HasSubstr("qk_norm: is a field that Tandem does not"));
  EXPECT_THAT(error_of("\"llama\"", "\"lama\""),
              testing::HasSubstr("model_type: 'lama' is not known, did you mean 'llama'?; allowed: bert, bloom, clip"));
}

TEST(NamedModels, KeysBesideANameWin) {
  const Scenario s =
      parse_scenario("machine: h100\nworkload: {model: llama-2-7b, sequence: 64, batch: 3}\npolicy: {name: resident}\n",
                     "s.yaml", {"workload.layers=2"});
  EXPECT_EQ(s.workload.family, "llama");
  EXPECT_EQ(s.workload.batch, 3);
  EXPECT_EQ(s.workload.keys.integer("sequence"), 64);
  EXPECT_EQ(s.workload.keys.integer("layers"), 2);
  EXPECT_EQ(s.workload.keys.integer("hidden"), 4096);
  // What a log's header holds needs no file of models/.
  EXPECT_EQ(s.text.find("model:"), std::string::npos);
}

TEST(NamedModels, WhatIsNoneIsRefused) {
  const auto error_of = [](const std::string& workload) {
    try {
      network_from(workload);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(error_of("{model: lama-2-7b}"),
              testing::HasSubstr("named.yaml:2:19: workload.model: there is no model 'lama-2-7b', did you mean "
                                 "'llama-2-7b'?; allowed: bert-base, "));
  EXPECT_THAT(error_of("{model: gpt2, family: bert}"),
              testing::HasSubstr("workload.family: is 'bert', and model gpt2 is a gpt; allowed: gpt, or no family"));
  EXPECT_THAT(error_of("{config: /nowhere.json}"),
              testing::HasSubstr("workload.config: there is no file '/nowhere.json'"));
}

// What one key's rule cannot say is told where the nearest of the keys was written.
TEST(Families, KeysThatDoNotGoTogetherAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"{family: unet, attends: [1]}",
       "named.yaml:2:36: workload.attends: are for 1 levels, multipliers for 4; allowed: "},
      {"{family: unet, image: 30}",
       "named.yaml:2:33: workload.image: 30 cannot be halved so often; allowed: a multiple of 8"},
      {"{model: resnet-50, image: 8}", "workload.image: 8 is too small for so many stages, workload.blocks ("},
      {"{model: vit-b-16, patch: 15}",
       "named.yaml:2:36: workload.patch: 15 does not divide image (224), workload.image ("},
      {"{model: llama-2-7b, kv_heads: 8}",
       "workload.kv_heads: is not a key here, did you mean 'key_heads'?; allowed: family"},
      {"{model: llama-2-7b, key_heads: 5}", "workload.key_heads: 5 does not divide heads (32)"},
      {"{model: mixtral-8x7b, experts: 1}", "workload.experts: 2 of 1 experts"},
      {"{model: gpt2, linear_tiles: 2, dropout: 0.1}", "only GPT-2's blocks can be cut into tiles"},
      {"{model: t5-small, most_distance: 10}", "workload.most_distance: is within the distances that are told apart"},
      {"{model: whisper-tiny, frames: 31}", "workload.frames: 31 is odd; allowed: an even number"},
      {"{family: unet, image: 16384, width: 16, groups: 4, heads: 2, multipliers: [1, 2], attends: [0, 1]}",
       "workload.family: one op would take more than 2^58 operations or bytes; allowed: smaller sizes"},
      {"{family: multimodal_llm, layers: 2, hidden: 64, heads: 4, feed_forward: 64, vocabulary: 99, sequence: 32}",
       "workload.image_layers, audio_layers: are both 0, and there is nothing but text; allowed: one that is not 0"},
      {"{model: llava-1.5-7b, image: 337}", "workload.image: 14 does not divide image (337), workload.patch ("},
      {"{model: llava-1.5-7b, image_heads: 7}", "workload.image_heads: 7 does not divide image_hidden (1024)"},
      {"{model: qwen2-audio-7b, audio_pool: 7}", "workload.audio_pool: 7 does not divide frames / 2 (1500)"},
      {"{model: qwen2-audio-7b, video_frames: 8}", "workload.video_frames: videos need the image encoder's sizes"},
      {"{family: gnn, inputs: 8, hidden: 8, classes: 3, fanouts: [60000, 60000, 60000, 60000]}", "more than 2^48"},
  };
  for (const auto& [workload, message] : cases) {
    try {
      network_from(workload);
      ADD_FAILURE() << workload << " was accepted";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Config, testing::ValuesIn(published_configs()), name_of_test);

}  // namespace
}  // namespace tandem
