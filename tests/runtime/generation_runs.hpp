// Runs that generate, for tests of both processors: networks of odd sizes, under policies that move weights and pages.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/scenario/text_lengths.hpp"
#include "tests/common/generation.hpp"
#include "tests/runtime/checked_run.hpp"

namespace tandem {

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20, kVocabulary = 256;
// By step and batch: the tokens of its texts.
using Tokens = std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int64_t>>;

struct Kind {
  const char* name;
  const char* family;
  const char* positions;  // null: the family has no other ones
  std::vector<std::pair<const char*, std::int64_t>> sizes;
  std::vector<std::pair<const char*, double>> numbers = {};
  const char* fusion = nullptr;
};

// Decoders of text, of odd sizes; all but the first have heads that share keys, or positions of another kind.
inline std::vector<Kind> decoders() {
  return {{"gpt", "gpt", "learned", {{"hidden", 36}, {"heads", 3}, {"sequence", 19}}},
          {"rotary gpt", "gpt", "rotary", {{"hidden", 48}, {"heads", 6}, {"key_heads", 3}, {"sequence", 19}}},
          {"llama",
           "llama",
           nullptr,
           {{"hidden", 48}, {"heads", 6}, {"key_heads", 2}, {"feed_forward", 88}, {"sequence", 17}}},
          {"llama with windows",
           "llama",
           nullptr,
           {{"hidden", 40}, {"heads", 4}, {"key_heads", 1}, {"feed_forward", 72}, {"sequence", 15}, {"window", 8}}},
          {"llama with windows shorter than a prompt",
           "llama",
           nullptr,
           {{"hidden", 48}, {"heads", 6}, {"key_heads", 3}, {"feed_forward", 72}, {"sequence", 15}, {"window", 5}}},
          {"gpt whose scores fall with distance", "gpt", "alibi", {{"hidden", 60}, {"heads", 6}, {"sequence", 15}}},
          {"llama with capped scores",
           "llama",
           nullptr,
           {{"hidden", 48}, {"heads", 6}, {"key_heads", 2}, {"feed_forward", 88}, {"sequence", 17}},
           {{"attention_softcap", 0.5}, {"output_softcap", 2.0}}}};
}

// With an encoder of text, of sound, or of pictures, which stand in the text or are attended to.
inline std::vector<Kind> behind_encoders() {
  const std::vector<std::pair<const char*, std::int64_t>> pictures = {
      {"hidden", 48}, {"heads", 6},         {"key_heads", 2},    {"feed_forward", 88}, {"sequence", 19},
      {"image", 24},  {"patch", 6},         {"image_layers", 2}, {"image_hidden", 36}, {"image_heads", 3},
      {"layers", 4},  {"memory_tokens", 5}, {"cross_every", 2}};
  return {{"t5",
           "t5",
           nullptr,
           {{"layers", 2},
            {"decoder_layers", 3},
            {"hidden", 48},
            {"heads", 3},
            {"feed_forward", 88},
            {"sequence", 23},
            {"target_sequence", 17},
            {"buckets", 8},
            {"most_distance", 9}}},
          {"whisper",
           "whisper",
           nullptr,
           {{"layers", 2},
            {"decoder_layers", 3},
            {"hidden", 48},
            {"heads", 3},
            {"mels", 10},
            {"frames", 50},
            {"sequence", 17}}},
          {"pictures in the text", "multimodal_llm", nullptr, pictures},
          {"pictures beside the text", "multimodal_llm", nullptr, pictures, {}, "cross_attention"}};
}

inline std::vector<Kind> kinds() {
  std::vector<Kind> all = decoders();
  for (Kind& kind : behind_encoders()) all.push_back(std::move(kind));
  return all;
}

inline Scenario scenario_of(const Kind& kind, std::int64_t page, const std::string& policy, std::int64_t device_bytes) {
  Scenario s = testing::generating_scenario(policy, device_bytes);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.workload.precision = DType::F32;
  s.workload.family = kind.family;
  if (s.workload.family != "gpt" && s.workload.family != "llama") s.workload.keys = {};
  s.workload.keys["vocabulary"] = kVocabulary;
  for (const auto& [key, size] : kind.sizes) s.workload.keys[key] = size;
  for (const auto& [key, number] : kind.numbers) s.workload.keys[key] = number;
  if (kind.fusion != nullptr) s.workload.keys["fusion"] = kind.fusion;
  if (kind.positions != nullptr) s.workload.keys["positions"] = kind.positions;
  s.workload.generate["page"] = page;
  s.seed = 7;
  return s;
}

struct Placement {
  PolicyOptions policy;
  std::int64_t device_bytes;
  bool moves_pages;
};

inline std::vector<Placement> placements() {
  const std::map<std::string, std::string> all_on_host = {{"wg", "0"}, {"cg", "0"}, {"hg", "0"}},
                                           on_cpu = {{"wg", "50"}, {"cg", "0"}, {"cpu_attention", "true"}};
  return {{{"resident", {}}, 64 * kMiB, false},
          {{"accelerate", {}}, 64 * kMiB, false},
          {{"deepspeed_inference", {}}, 64 * kMiB, false},
          {{"flexgen", all_on_host}, 64 * kMiB, true},
          {{"flexgen", on_cpu}, 64 * kMiB, false}};
}

inline Scenario with_coded_cache(const Kind& kind, const Placement& placed) {
  Scenario scenario = scenario_of(kind, 4, placed.policy.name, placed.device_bytes);
  scenario.policy = placed.policy;
  scenario.workload.generate["cache_bits"] = 4;
  return scenario;
}

// Each of the six texts has a prompt of its own length. The first ones of both batches are padded.
inline const std::vector<std::int64_t>& some_lengths() {
  static const std::vector<std::int64_t> kLengths = {3, 7, 5, 2, 6, 1};
  return kLengths;
}
inline Scenario with_lengths(Scenario scenario) {
  scenario.workload.generate[kPromptLengths] = some_lengths();
  return scenario;
}

// The first text's of each batch. `moved`: the roles of what was copied to the device. `data`: where it is not the
// scenario's.
inline Tokens live(const Scenario& scenario, std::set<Role>& moved, std::shared_ptr<Device> device = nullptr,
                   std::function<std::unique_ptr<DataSource>()> data = nullptr) {
  TrainOptions options;
  if (data) options.open_data = std::move(data);
  options.poison = true;
  options.device = std::move(device);
  Training training(scenario, options);
  run_checked(training);
  std::map<CommandId, OpId> ops;
  Tokens made;
  for (const auto& entry : training.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = ops.find(event.command); found != ops.end()) {
        const Op& op = training.graph().op(found->second);
        made[{op.step, op.micro_batch}] = {event.result};
      }
    for (const Command& command : entry.commands) {
      if (command.kind == CommandKind::Copy && command.target.tier == Tier::Device)
        moved.insert(training.graph().tensor_of(command.part.value).role);
      if (command.kind == CommandKind::Run && training.graph().op(command.op).has_result) ops[command.id] = command.op;
    }
  }
  return made;
}

}  // namespace tandem
