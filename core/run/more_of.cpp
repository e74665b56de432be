#include "core/run/more_of.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/base/check.hpp"
#include "core/machine/topology.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {
namespace {

// A resource's keys, each set to more than it has.
class Keys {
 public:
  explicit Keys(double factor) : factor_(factor) {}
  // What the profile does not state is left alone.
  Keys& rate(const std::string& key, double value, const char* unit) {
    if (value > 0) settings_.push_back(fmt::format("{}={:.9g}G{}", key, value * factor_ / 1e9, unit));
    return *this;
  }
  Keys& bytes(const std::string& key, std::int64_t value) {
    settings_.push_back(fmt::format("{}={}B", key, value));
    return *this;
  }
  const std::vector<std::string>& settings() const { return settings_; }

 private:
  double factor_;
  std::vector<std::string> settings_;
};

Keys more_flops(const HardwareProfile& machine, Keys keys) {
  for (const auto& [type, flops] : machine.peak_flops)
    keys.rate("machine.compute.peak." + std::string(name_of(type)), flops, "FLOPS");
  return keys;
}

// One way, as far as it alone is what holds it.
Keys more_copies(const std::string& way, const CopyRate& rate, double limit, Keys keys) {
  return keys.rate("machine.copies." + way + ".bandwidth", rate.bytes_per_s, "B/s").rate("limits." + way, limit, "B/s");
}

Keys more_bus(const Scenario& scenario, const HardwareProfile& machine, const Keys& keys) {
  Keys both = more_copies("h2d", machine.h2d, scenario.limits.h2d_bytes_per_s, keys);
  both = more_copies("d2h", machine.d2h, scenario.limits.d2h_bytes_per_s, both);
  return both.rate("machine.copies.shared_bandwidth", machine.pcie_bytes_per_s, "B/s")
      .rate("machine.copies.host_bandwidth", machine.host_copy_bytes_per_s, "B/s");
}

Keys more_cpu(const HardwareProfile& machine, Keys keys) {
  return keys.rate("machine.cpu.optimizer.rate", machine.cpu_optimizer_parameters_per_s, "parameters/s")
      .rate("machine.cpu.peak", machine.cpu_flops, "FLOPS");
}

// What has `oversubscription` grows with what is below it.
Keys more_of_topology(const Topology& topology, Keys keys) {
  const std::string at = "machine.topology.";
  keys.rate(at + "nvlink.bandwidth", topology.nvlink.bytes_per_s, "B/s")
      .rate(at + "pcie.bandwidth", topology.pcie.bytes_per_s, "B/s")
      .rate(at + "pcie.uplink.bandwidth", topology.pcie_uplink.bytes_per_s, "B/s")
      .rate(at + "nics.bandwidth", topology.nic.bytes_per_s, "B/s")
      .rate(at + "torus.bandwidth", topology.torus.bytes_per_s, "B/s");
  for (std::size_t i = 0; i < topology.levels.size(); ++i)
    if (const FatTreeLevel& level = topology.levels[i]; level.links > 0)
      keys.rate(at + "fat_tree." + kTreeLevels[i] + ".bandwidth",
                level.up.bytes_per_s / static_cast<double>(level.links), "B/s");
  return keys;
}

Keys more_links(const HardwareProfile& machine, Keys keys) {
  if (machine.topology) return more_of_topology(*machine.topology, std::move(keys));
  return keys.rate("machine.collective.bandwidth", machine.collective_bytes_per_s, "B/s")
      .rate("machine.copies.peer.bandwidth", machine.peer.bytes_per_s, "B/s");
}

Keys more_disk(const HardwareProfile& machine, Keys keys) {
  return keys.rate("machine.copies.disk_read.bandwidth", machine.disk_read.bytes_per_s, "B/s")
      .rate("machine.copies.disk_write.bandwidth", machine.disk_write.bytes_per_s, "B/s")
      .rate("machine.tiers.disk.bandwidth", machine.tiers[static_cast<std::size_t>(Tier::Disk)].bytes_per_s, "B/s");
}

Keys more_memory(const Scenario& scenario, Tier tier, const char* limit, std::int64_t limit_bytes, double factor) {
  const std::int64_t now = tier_memory_bytes(scenario, tier);
  const auto more = static_cast<std::int64_t>(std::llround(static_cast<double>(now) * factor));
  Keys keys(factor);
  if (more > scenario.machine.tiers[static_cast<std::size_t>(tier)].capacity_bytes)
    keys.bytes("machine.tiers." + std::string(name_of(tier)) + ".capacity", more);
  if (limit_bytes > 0) keys.bytes(limit, more);
  return keys;
}

}  // namespace

std::vector<MoreOf> more_of_each(const Scenario& scenario, double factor) {
  CHECK(scenario.whole_machine != nullptr, "more of a machine that was not read");
  const HardwareProfile& machine = *scenario.whole_machine;
  const Limits& limits = scenario.limits;
  const Keys none(factor);
  const auto bandwidth = [&](Tier tier, Keys keys) {
    return keys.rate("machine.tiers." + std::string(name_of(tier)) + ".bandwidth",
                     machine.tiers[static_cast<std::size_t>(tier)].bytes_per_s, "B/s");
  };
  const Keys cpu = more_cpu(machine, none);
  std::vector<MoreOf> all;
  const auto add = [&](const char* resource, const char* words, const Keys& keys, const char* part_of = "") {
    if (!keys.settings().empty()) all.push_back({resource, words, keys.settings(), part_of});
  };
  add("compute", "FLOPS of the device", more_flops(machine, none));
  add("device_bandwidth", "bandwidth of the device's memory", bandwidth(Tier::Device, none));
  add("h2d", "bandwidth to the device", more_copies("h2d", machine.h2d, limits.h2d_bytes_per_s, none), "pcie");
  add("d2h", "bandwidth from the device", more_copies("d2h", machine.d2h, limits.d2h_bytes_per_s, none), "pcie");
  add("pcie", "bandwidth of the bus, both ways", more_bus(scenario, machine, none));
  add("cpu", "CPU speed", cpu, "host");
  add("dram", "bandwidth of the host's memory", bandwidth(Tier::HostPinned, none), "host");
  add("host", "CPU speed and memory bandwidth", bandwidth(Tier::HostPinned, cpu));
  if (tier_memory_bytes(scenario, Tier::Disk) > 0) add("disk", "bandwidth of the disk", more_disk(machine, none));
  add("device_memory", "memory of the device",
      more_memory(scenario, Tier::Device, "limits.device_bytes", limits.device_bytes, factor));
  add("host_memory", "memory of the host",
      more_memory(scenario, Tier::HostPinned, "limits.host_bytes", limits.host_bytes, factor));
  if (scenario.workload.devices > 1) add("links", "bandwidth between devices", more_links(machine, none));
  return all;
}

}  // namespace tandem
