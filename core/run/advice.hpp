// What would help a run that was refused for want of memory, found by trying: how much memory is enough, and which keys
// of the scenario make it fit. Must not know how a run is tried.
#pragma once

#include <functional>
#include <string>

#include "core/scenario/scenario.hpp"
#include "core/scheduler/refusal.hpp"

namespace tandem {

struct TrialResult {
  enum class Kind : std::uint8_t { Done, Refused, Unknown } kind = Kind::Unknown;  // Unknown: given up, or failed
  OutOfRoom::Figures figures;                                                      // if it was refused
};
// Runs a scenario, or gives it up.
using Trial = std::function<TrialResult(const Scenario&)>;

// The message of a refusal: a line for people, and one with the numbers in full. The refused scenario must have its
// text (Scenario::text); without it no keys are tried.
std::string advise(const Scenario& scenario, const OutOfRoom& refusal, const Trial& trial);

const char* memory_words(Tier tier);  // "host memory"

// How much of each tier is enough (0: what there is).
struct Enough {
  bool found = false;                            // by a run that was done
  std::array<std::int64_t, kTierCount> bytes{};  // not found: at least so many are needed
};
Enough find_enough(const Scenario& scenario, const OutOfRoom::Figures& refused, const Trial& trial);

}  // namespace tandem
