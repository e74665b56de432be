// Runs that generate, for tests of both processors: networks of odd sizes, under policies that move weights and pages.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
};

// Odd sizes; all but the first have positions by rotation and heads that share keys.
inline std::vector<Kind> kinds() {
  return {{"gpt", "gpt", "learned", {{"hidden", 36}, {"heads", 3}, {"sequence", 19}}},
          {"rotary gpt", "gpt", "rotary", {{"hidden", 48}, {"heads", 6}, {"key_heads", 3}, {"sequence", 19}}},
          {"llama",
           "llama",
           nullptr,
           {{"hidden", 48}, {"heads", 6}, {"key_heads", 2}, {"feed_forward", 88}, {"sequence", 17}}},
          {"llama with windows",
           "llama",
           nullptr,
           {{"hidden", 40}, {"heads", 4}, {"key_heads", 1}, {"feed_forward", 72}, {"sequence", 15}, {"window", 8}}}};
}

inline Scenario scenario_of(const Kind& kind, std::int64_t page, const std::string& policy, std::int64_t device_bytes) {
  Scenario s = testing::generating_scenario(policy, device_bytes);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.workload.precision = DType::F32;
  s.workload.family = kind.family;
  s.workload.keys["vocabulary"] = kVocabulary;
  for (const auto& [key, size] : kind.sizes) s.workload.keys[key] = size;
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

// The first text's of each batch. `moved`: the roles of what was copied to the device.
inline Tokens live(const Scenario& scenario, std::set<Role>& moved, std::shared_ptr<Device> device = nullptr) {
  TrainOptions options;
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
