// Ops of a few kernels each and how long they are launched, alone and beside busy lanes: what LaunchSlowDown is fitted
// to. Must not know how.
#pragma once

#include <string>
#include <vector>

#include "calibration/lane_times.hpp"
#include "calibration/op_times.hpp"
#include "core/machine/profile.hpp"

namespace tandem {

// Of one kind of op, medians over rounds.
struct LaunchTime {
  Work work;
  std::vector<Engine> others;  // that were busy; none: alone
  bool recorded = false;       // launches were
  double ns = 0;
  double launch_ns = 0;  // of the submitting thread
};

// `trial`: a network whose ops are short, though longer than launching them takes even beside others, and whose states
// no cache holds.
std::vector<LaunchTime> time_launches(const Trial& trial, const CopyDesign& copies, const BenchDevice& device,
                                      bool quick);

// Needs the fits of the host's memory and of bodies.
void fit_launches_beside(const std::vector<LaunchTime>& times, const std::vector<OpTime>& ops,
                         HardwareProfile& profile);

// How well it gives back each op that it was fitted to, for people: "gpt.block.forward beside h2d: 370 us, ...".
std::vector<std::string> launch_report(const std::vector<LaunchTime>& times, const std::vector<OpTime>& ops,
                                       const HardwareProfile& profile);

}  // namespace tandem
