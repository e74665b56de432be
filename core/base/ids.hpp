// The identifiers, tiers and engines that the graph, the scheduler and the executors share.
// Knows nothing of time, policies or any world.
#pragma once

#include <compare>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

namespace tandem {

using Rank = std::int32_t;
using OpId = std::int32_t;
using ValueId = std::int32_t;
using TensorId = std::int32_t;
using WorkId = std::int32_t;
// Dense per rank: the n-th command that a scheduler issued. Ids of different ranks do not compare.
using CommandId = std::int64_t;

inline constexpr std::int32_t kNone = -1;
inline constexpr CommandId kNoCommand = -1;

// Where bytes can live. Order matters: eviction goes to a later tier.
enum class Tier : std::uint8_t { Device, HostPinned, HostPageable, Disk };
inline constexpr int kTierCount = 4;

// What a lane drives: its kind. Each lane runs one command at a time in issue order.
enum class Engine : std::uint8_t {
  Compute,
  H2D,
  D2H,
  H2DSmall,  // scalars: four bytes must not queue behind gigabytes
  D2HSmall,
  P2P,
  Collective,
  CpuCompute,
  CpuOptimizer,
  DiskRead,
  DiskWrite,
  Loader,
  RemoteLoader,  // workers of another host, which make items of a batch
};
inline constexpr int kEngineCount = 13;

// A lane of a rank, by kind and number. The first of each kind is always there; a machine may have more of some
// (HardwareProfile::lanes), such as a second stream of kernels or several teams of CPU threads.
inline constexpr int kMostLanesOfAKind = 4;
inline constexpr int kLaneCount = kEngineCount * kMostLanesOfAKind;
class LaneIndex {
 public:
  // Not explicit: where a machine has one lane of a kind, the kind names it.
  constexpr LaneIndex(Engine kind = Engine::Compute, int number = 0)
      : place_(static_cast<std::uint8_t>(number * kEngineCount + static_cast<int>(kind))) {}
  static constexpr LaneIndex at(std::size_t place) {
    return {static_cast<Engine>(place % kEngineCount), static_cast<int>(place / kEngineCount)};
  }
  constexpr Engine kind() const { return static_cast<Engine>(place_ % kEngineCount); }
  constexpr int number() const { return place_ / kEngineCount; }  // from 0
  constexpr std::size_t place() const { return place_; }          // below kLaneCount
  constexpr auto operator<=>(const LaneIndex&) const = default;

 private:
  std::uint8_t place_;
};

constexpr std::string_view name_of(Tier tier) {
  constexpr std::string_view kNames[] = {"device", "host_pinned", "host_pageable", "disk"};
  static_assert(std::size(kNames) == kTierCount);
  return kNames[static_cast<int>(tier)];
}

constexpr std::string_view name_of(Engine engine) {
  constexpr std::string_view kNames[] = {"compute",    "h2d",        "d2h",          "h2d_small",     "d2h_small",
                                         "p2p",        "collective", "cpu_compute",  "cpu_optimizer", "disk_read",
                                         "disk_write", "loader",     "remote_loader"};
  static_assert(std::size(kNames) == kEngineCount);
  return kNames[static_cast<int>(engine)];
}

// "compute", and "compute.1" of the second.
inline std::string name_of(LaneIndex lane) {
  return std::string(name_of(lane.kind())) + (lane.number() > 0 ? "." + std::to_string(lane.number()) : "");
}

// The tier that an engine's operands must be in.
constexpr Tier operand_tier(Engine engine) {
  switch (engine) {
    case Engine::CpuCompute:
    case Engine::CpuOptimizer:
    case Engine::Loader:
    case Engine::RemoteLoader:
      return Tier::HostPinned;
    default:
      return Tier::Device;
  }
}

}  // namespace tandem
