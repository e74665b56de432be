// Simulates many combinations, several at a time. Must not know what is done with the results.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/simulated_row.hpp"
#include "sweep/plan.hpp"

namespace tandem {

struct SweepPoint {
  std::size_t number = 0;
  std::vector<std::string> settings;  // --set arguments
};

struct SweepRun {
  std::vector<std::string> base;                    // arguments that all have: the scenario, --set, --seed
  KeyRange largest;                                 // key "": none
  int processes = 1;                                // at a time
  std::function<std::optional<SweepPoint>()> next;  // in turn; none: no more
  // As they end, in no order.
  std::function<void(const SweepPoint& point, SimulatedRow row)> done;
};

// Processes that this machine's cores can run at once.
int cores_here();

// Throws Interrupted on SIGINT or SIGTERM, and what `next` and `done` throw. What does not end well is a row.
void simulate_all(const SweepRun& run);

}  // namespace tandem
