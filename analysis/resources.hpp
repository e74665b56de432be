// A run's resources over its timed steps: how long each stands idle, and what lanes of copies carry a step.
// Must not know formats or worlds.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "analysis/steps.hpp"
#include "analysis/timeline.hpp"

namespace tandem {

// gpu, cpu, h2d, d2h and disk: 1 minus the share of the timed steps in which any of its lanes runs a command, mean over
// ranks. 1 for what a run does not use.
std::map<std::string, double> idle_shares(const Timeline& timeline, const Steps& steps);

// By lane, of copies that end in the timed steps.
std::map<std::string, double> bytes_a_step(const Timeline& timeline, const Steps& steps);

// Of the model, as one rank holds it.
std::int64_t parameter_count(const Timeline& timeline);
// Of those, the ones that have gradients.
std::int64_t trained_parameter_count(const Timeline& timeline);
// Of the frozen ones, those that are kept as codes.
std::int64_t compressed_parameter_count(const Timeline& timeline);

}  // namespace tandem
