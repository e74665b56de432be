// Every family's small instance trains as plain autograd does, to the bit: with recompute, over several micro-batches,
// and with clipping, though a policy moves what it needs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/workloads/workload.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/exact_run.hpp"

namespace tandem {
namespace {

struct Way {
  const char* name;
  const char* policy;
  std::int64_t micro_batches;
  const char* recompute;
  double clip_norm;
};
constexpr Way kWays[] = {{"plain", "resident", 1, "none", 0},
                         {"accumulated", "zero_offload", 2, "block", 0.5},
                         {"streamed", "zero_infinity", 4, "none", 0.5}};

bool recomputes(const WorkloadEntry& family) {
  const std::vector<std::string>& shared = family.keys->shared;
  return std::find(shared.begin(), shared.end(), "recompute") != shared.end();
}

Scenario scenario_of(const WorkloadEntry& family, const Way& way) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  Scenario s = testing::gpt_scenario(way.policy, 512 * kMiB);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 512 * kMiB;
  s.workload.family = family.name;
  s.workload.keys = family.keys->small_instance();
  s.workload.batch = 3;
  s.workload.micro_batches = way.micro_batches;
  if (recomputes(family)) s.workload.recompute = way.recompute;
  s.optimizer.clip_norm = way.clip_norm;
  s.steps = 20;
  s.seed = 7;
  return s;
}

class EveryFamily : public ::testing::TestWithParam<std::tuple<std::string, Way>> {};

TEST_P(EveryFamily, TrainsAsAutogradDoes) {
  const auto& [name, way] = GetParam();
  expect_trains_as_reference(scenario_of(*find_workload(name), way));
}

// Options that give other programs than a family's small instance has.
struct Variant {
  const char* name;
  const char* family;
  std::vector<std::pair<std::string, KeyValue>> keys;
  std::map<std::string, std::int64_t> items = {};
  std::vector<std::string> trained = {};
};
// All but the encoders.
const std::vector<std::string> kAligned = {"*_aligner.*", "text_embedding.*", "backbone*", "head.*"};
const Variant kVariants[] = {
    {"dropout", "gpt", {{"dropout", 0.2}}},
    {"dropout_of_masked_tokens", "bert", {{"dropout", 0.1}}},
    {"gpt_j",
     "gpt",
     {{"positions", "rotary"},
      {"rotary_dims", 8},
      {"rotary_pairs", "neighbours"},
      {"residual", "parallel"},
      {"attention_biases", false},
      {"tied_embedding", false},
      {"output_bias", true}}},
    {"opt", "gpt", {{"activation", "relu"}, {"feed_forward", 88}}},
    {"bloom", "gpt", {{"positions", "alibi"}, {"embedding_norm", true}}},
    {"falcon",
     "gpt",
     {{"positions", "rotary"},
      {"key_heads", 1},
      {"residual", "parallel_two_norms"},
      {"attention_biases", false},
      {"feed_forward_biases", false},
      {"activation", "gelu"}}},
    {"qwen", "llama", {{"qkv_bias", true}, {"tied_embedding", true}, {"loss_tiles", 1}}},
    {"mistral", "llama", {{"window", 9}}},
    {"gemma",
     "llama",
     {{"head_size", 16},
      {"activation", "gelu_tanh"},
      {"window", 9},
      {"alternate_windows", true},
      {"query_scale", 20.0},
      {"attention_softcap", 50.0},
      {"output_softcap", 30.0},
      {"post_norms", true},
      {"scaled_embedding", true},
      {"unit_offset", true},
      {"tied_embedding", true}}},
    {"padded_gpt", "gpt", {{"vocabulary_multiple", 64}}},
    {"padded_gpt_with_a_layer_of_its_own",
     "gpt",
     {{"vocabulary_multiple", 64}, {"tied_embedding", false}, {"output_bias", true}}},
    {"padded_bert", "bert", {{"vocabulary_multiple", 8}}},
    {"padded_gemma", "llama", {{"vocabulary_multiple", 64}, {"output_softcap", 30.0}, {"tied_embedding", true}}},
    {"padded_experts", "moe", {{"vocabulary_multiple", 64}}},
    {"padded_t5", "t5", {{"vocabulary_multiple", 64}}},
    {"padded_t5_1_1", "t5", {{"vocabulary_multiple", 16}, {"tied_embedding", false}}},
    {"padded_whisper", "whisper", {{"vocabulary_multiple", 64}}},
    {"full_experts", "moe", {{"capacity_factor", 0.6}, {"experts_per_token", 3}}},
    {"unbalanced_experts", "moe", {{"balance", 0.0}}},
    {"t5_1_1", "t5", {{"gated", true}, {"tied_embedding", false}, {"head_size", 8}, {"decoder_layers", 1}}},
    {"mean_of_patches", "vit", {{"pooling", "mean"}}},
    {"basic_blocks", "convnet", {{"kind", "basic"}}},
    {"vgg", "convnet", {{"kind", "vgg"}, {"hidden", 31}}},
    {"last_token_of_sounds", "trimodal", {{"audio_pooling", "last"}, {"temperature", 0.5}}},
    {"few_of_each",
     "trimodal",
     {},
     {{"image", 2}, {"audio", 1}, {"text", 5}, {"image_text", 4}, {"audio_text", 2}, {"image_audio", 1}}},
    {"cached_features_of_pairs",
     "trimodal",
     {},
     {{"image", 5}, {"image_cached", 3}, {"audio_cached", 3}, {"text_cached", 1}},
     {"*_aligner.*", "head.*"}},
    {"linear_aligners", "multimodal_llm", {{"aligner", "linear"}, {"image_style", "vit"}, {"image_norm", false}}},
    {"resamplers", "multimodal_llm", {{"aligner", "resampler"}, {"tied_embedding", true}}},
    {"resampler_of_one_query", "multimodal_llm", {{"aligner", "resampler"}, {"aligner_tokens", 1}}},
    {"cross_attention", "multimodal_llm", {{"fusion", "cross_attention"}, {"head_size", 10}}},
    {"resampled_cross_attention",
     "multimodal_llm",
     {{"fusion", "cross_attention"}, {"aligner", "resampler"}, {"cross_every", 1}, {"audio_layers", 0}}},
    {"videos", "multimodal_llm", {{"video_frames", 3}}},
    {"all_frames_of_videos",
     "multimodal_llm",
     {{"video_frames", 2}, {"video_pooling", "none"}, {"audio_layers", 0}, {"fusion", "cross_attention"}}},
    {"few_items", "multimodal_llm", {{"video_frames", 2}}, {{"image", 2}, {"audio", 1}, {"video", 1}}},
    {"frozen_encoders", "multimodal_llm", {}, {{"image", 5}}, kAligned},
    {"cached_features",
     "multimodal_llm",
     {{"video_frames", 2}, {"aligner", "resampler"}},
     {{"image", 4}, {"image_cached", 3}, {"audio_cached", 3}, {"video", 2}, {"video_cached", 1}},
     kAligned},
    {"cached_memory",
     "multimodal_llm",
     {{"fusion", "cross_attention"}},
     {{"image_cached", 2}, {"audio_cached", 1}},
     {"*_aligner.*", "backbone*.cross*"}},
};

class EveryVariant : public ::testing::TestWithParam<Variant> {};

TEST_P(EveryVariant, TrainsAsAutogradDoes) {
  Scenario scenario = scenario_of(*find_workload(GetParam().family), kWays[1]);
  for (const auto& [key, value] : GetParam().keys) scenario.workload.keys.set(key, value);
  scenario.workload.items = GetParam().items;
  scenario.workload.trained = GetParam().trained;
  expect_trains_as_reference(scenario);
}

INSTANTIATE_TEST_SUITE_P(All, EveryVariant, ::testing::ValuesIn(kVariants),
                         [](const auto& test) { return std::string(test.param.name); });

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const WorkloadEntry* entry : workloads())
    if (entry->network != nullptr) names.emplace_back(entry->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, EveryFamily,
                         ::testing::Combine(::testing::ValuesIn(families()), ::testing::ValuesIn(kWays)),
                         [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param).name; });

}  // namespace
}  // namespace tandem
