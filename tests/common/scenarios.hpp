// Scenarios and machines built in code, for tests that need no files: round numbers, so that times can be checked by
// hand.
#pragma once

#include "core/scenario/scenario.hpp"

namespace tandem::testing {

inline HardwareProfile round_machine(std::int64_t device_bytes, std::int64_t host_bytes = std::int64_t{1} << 40,
                                     std::int64_t disk_bytes = 0) {
  HardwareProfile p;
  p.name = "round";
  p.tiers[static_cast<std::size_t>(Tier::Device)] = {device_bytes, 1e12};
  p.tiers[static_cast<std::size_t>(Tier::HostPinned)] = {host_bytes, 1e11};
  p.tiers[static_cast<std::size_t>(Tier::Disk)] = {disk_bytes, 1e9};
  for (DType type : {DType::F32, DType::F16, DType::BF16}) p.peak_flops[type] = 1e13;
  p.h2d.bytes_per_s = p.d2h.bytes_per_s = 1e10;
  p.disk_read.bytes_per_s = p.disk_write.bytes_per_s = 1e9;
  p.peer.bytes_per_s = 1e10;
  p.cores = 8;
  p.cpu_flops = 1e12;
  p.cpu_optimizer_parameters_per_s = 1e9;
  p.loader_bytes_per_s = 1e10;
  p.collective_bytes_per_s = 1e10;
  return p;
}

inline Scenario gpt_scenario(const std::string& policy, std::int64_t device_bytes, int layers = 4) {
  Scenario s;
  s.machine = round_machine(device_bytes);
  s.workload.family = "gpt";
  s.workload.keys["layers"] = layers;
  s.workload.keys["hidden"] = 64;
  s.workload.keys["heads"] = 4;
  s.workload.keys["vocabulary"] = 256;
  s.workload.keys["sequence"] = 32;
  s.workload.batch = 2;
  s.policy.name = policy;
  s.steps = 3;
  return s;
}

// `count` layers of `layer_bytes` parameters with the given times.
inline Scenario layers_scenario(const std::string& policy, std::int64_t device_bytes, int count,
                                std::int64_t layer_bytes, std::int64_t forward_ns, std::int64_t backward_ns,
                                std::int64_t optimizer_ns) {
  Scenario s;
  s.machine = round_machine(device_bytes);
  s.workload.family = "layers";
  s.workload.precision = DType::BF16;
  s.workload.keys["layers"] = count;
  s.workload.keys["layer_bytes"] = layer_bytes;
  s.workload.keys["forward"] = forward_ns;
  s.workload.keys["backward"] = backward_ns;
  s.workload.keys["optimizer"] = optimizer_ns;
  s.policy.name = policy;
  s.steps = 3;
  return s;
}

}  // namespace tandem::testing
