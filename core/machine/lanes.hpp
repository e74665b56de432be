// The lanes that a machine has, and the CPU's cores that they claim: one budget, in the simulator and live. Must not
// know commands.
#pragma once

#include "core/machine/profile.hpp"

namespace tandem {

// Of a kind, numbered from 0.
int lane_count(const HardwareProfile& profile, Engine kind);

// What computes on a team of CPU threads. (Copies, disks and loaders take a core's time now and then:
// HardwareProfile::lane_cores.)
constexpr bool claims_cores(Engine kind) { return kind == Engine::CpuCompute || kind == Engine::CpuOptimizer; }

// Whose commands begin once other ranks have come to theirs.
constexpr bool waits_for_ranks(Engine kind) { return kind == Engine::Collective || kind == Engine::P2P; }

// The cores that a command claims while it runs on a lane of the kind, 0 where none. Commands claim at most all cores
// together: what would claim more waits for its turn, in order of its command.
std::int32_t claimed_cores(const HardwareProfile& profile, Engine kind);

}  // namespace tandem
