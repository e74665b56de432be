// Runs that make images of noise, for tests of both processors: a small unet, under policies that move weights.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/latents.hpp"
#include "tests/common/generation.hpp"
#include "tests/runtime/checked_run.hpp"

namespace tandem {

inline Scenario images_under(const PolicyOptions& policy, std::int64_t device_bytes, DType type, double guidance = 0) {
  constexpr std::int64_t kLower = std::int64_t{256} << 20;
  Scenario s = testing::denoising_scenario(policy.name, device_bytes);
  for (const Tier tier : {Tier::HostPinned, Tier::Disk})
    s.machine.tiers[static_cast<std::size_t>(tier)].capacity_bytes = kLower;
  s.workload.precision = type;
  s.policy = policy;
  s.seed = 7;
  if (guidance > 0) s.workload.generate["guidance"] = guidance;
  return s;
}

// Those that bring weights in each step.
inline std::vector<PolicyOptions> policies_that_bring_weights() {
  return {{"accelerate", {}},
          {"deepspeed_inference", {}},
          {"row_by_row", {}},
          {"flexgen", {{"wg", "50"}}},
          {"flexgen", {{"wg", "0"}, {"hg", "0"}}},
          {"flexgen", {{"wg", "10"}, {"wc", "30"}, {"hg", "20"}, {"hc", "30"}}}};
}

struct MadeImages {
  Latents latents;
  std::int64_t brought = 0;  // copies of weights to the device
};
inline MadeImages live_images(const Scenario& scenario, std::shared_ptr<Device> device = nullptr) {
  TrainOptions options;
  options.poison = true;
  options.device = std::move(device);
  Training training(scenario, options);
  run_checked(training);
  MadeImages made{latents_of(training, scenario)};
  for (const auto& entry : training.log().entries())
    made.brought += std::count_if(entry.commands.begin(), entry.commands.end(), [&](const Command& command) {
      return command.kind == CommandKind::Copy && command.target.tier == Tier::Device &&
             training.graph().tensor_of(command.part.value).role == Role::Parameter;
    });
  return made;
}

}  // namespace tandem
