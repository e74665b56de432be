// A scenario that generates, for tests of the graph and of simulations.
#pragma once

#include "core/workloads/workload.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {

// Odd sizes: 2 batches of 3 texts, 7 tokens of prompt, 6 to generate, in pages of 4.
inline Scenario generating_scenario(const std::string& policy, std::int64_t device_bytes) {
  Scenario s = gpt_scenario(policy, device_bytes);
  s.workload.precision = DType::BF16;
  s.workload.batch = 3, s.workload.micro_batches = 2;
  s.workload.generate["prompt"] = 7, s.workload.generate["new_tokens"] = 6, s.workload.generate["page"] = 4;
  s.steps = 6;
  return s;
}

// The small unet: 2 batches of 3 images, in 6 steps.
inline Scenario denoising_scenario(const std::string& policy, std::int64_t device_bytes) {
  Scenario s = gpt_scenario(policy, device_bytes);
  s.workload.family = "unet";
  s.workload.keys = find_workload("unet")->keys->small_instance();
  s.workload.batch = 3, s.workload.micro_batches = 2;
  s.workload.generate["steps"] = s.steps = 6;
  return s;
}

}  // namespace tandem::testing
