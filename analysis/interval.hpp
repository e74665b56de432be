// How sure a simulated step time is: a 90% interval, to first order, from what the profile says of its own uncertainty
// and from what the run's critical path spends its time on. Must not know formats or how profiles are made.
#pragma once

#include <array>
#include <optional>

#include "analysis/steps.hpp"
#include "analysis/timeline.hpp"

namespace tandem {

// Seconds of a training step on the chain of commands that held up its end, by cause: by how much the step would grow
// if the cause took twice as long. Sharing is the part of the commands' time that other lanes added: it counts twice.
struct PathTimes {
  std::array<double, kTimeCauseCount> s{};
  double other_s = 0;  // causes that no profile has an uncertainty of
  // Of these, ops that were measured one by one, and how far those may be off: the standard deviations of their times,
  // added up as if all of a run deviated together.
  std::array<double, kTimeCauseCount> measured_s{}, deviation_s{};
  double& of(TimeCause cause) { return s[static_cast<std::size_t>(cause)]; }
  double of(TimeCause cause) const { return s[static_cast<std::size_t>(cause)]; }
};
// The mean over the steps that count, on one rank.
PathTimes path_times(const RankTimeline& rank, const Steps& steps, const Scenario& scenario);

struct Interval {
  double low = 0, high = 0;  // seconds
  double width() const { return high - low; }
  bool contains(double s) const { return s >= low && s <= high; }
};
// Around a step of `step_s`. None where the profile has no uncertainty of something that the step waits for.
std::optional<Interval> step_interval(const Timeline& timeline, const Steps& steps, const Scenario& scenario,
                                      double step_s);

}  // namespace tandem
