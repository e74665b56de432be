// What tests of a GPU have in common: the device of this process, and a network that trains on it in a moment.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "runtime/open_device.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem {

inline int gpu_count() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}
inline bool has_gpu() { return gpu_count() > 0; }

// Of a process that is one of several ranks (--rank, --ranks), its own.
inline std::shared_ptr<Device> gpu() {
  static const std::shared_ptr<Device> kDevice = [] {
    const std::string ranks = argument("ranks");
    return ranks.empty() ? open_device("cuda") : open_device("cuda", std::stoi(argument("rank")), std::stoi(ranks));
  }();
  return kDevice;
}

inline Scenario gpt_on_gpu(const std::string& policy, DType precision) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  Scenario s = testing::gpt_scenario(policy, 512 * kMiB, /*layers=*/4);
  s.machine.gpu = true;
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 512 * kMiB;
  s.workload.keys["hidden"] = 256;
  s.workload.keys["sequence"] = 128;
  s.workload.batch = 8;
  s.workload.precision = precision;
  s.seed = 7;
  if (const char* text = std::getenv("TANDEM_TEST_TEXT")) s.data_text = text;
  return s;
}

}  // namespace tandem
