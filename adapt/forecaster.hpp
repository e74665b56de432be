// What a run would take under other policies from here on: asked for, and answered later. Must not know who asks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "core/scheduler/seam.hpp"

namespace tandem {

struct Forecast {
  PolicyOptions policy;
  double step_s = 0;    // of a step once it has settled
  double switch_s = 0;  // what going over to it takes once, beyond its steps
  std::string why_not;  // it cannot: then the rest says nothing
};

struct PlannedWith {
  Rates rates;            // of the machine
  std::int32_t step = 0;  // the training step whose mix it was planned for
};

class Forecaster {
 public:
  virtual ~Forecaster() = default;
  // Of the policy in force, which comes first, and the others; one of these may be the same policy, made anew.
  // `plan`: what was known when the one in force was made; `rates`: what is known of the machine by now. Of steps with
  // the mix that holds from training step `step` on. One question at a time.
  virtual void ask(const PolicyOptions& now, const PlannedWith& plan, const std::vector<PolicyOptions>& others,
                   const Rates& rates, std::int32_t step) = 0;
  // Where it is there; in the order of the question. Does not wait.
  virtual std::optional<std::vector<Forecast>> answer() = 0;
};

// Simulates in other processes, one after another. They are started by a process that is started at once: one that
// holds much memory, some of it pinned, does not fork. Null: no simulator is installed beside this program. `waits`:
// answer() does, so that what it leads to does not depend on how long that takes; else they have the lowest priority.
std::unique_ptr<Forecaster> simulating_forecaster(const Scenario& scenario, bool waits);

}  // namespace tandem
