// For steps whose samples differ: decides step by step, by what the step holds and by the rates that are known, where
// decoded items become numbers (workers or device), which items another host decodes, and how many of the micro-batches
// the CPU computes; branches of the network whose items are there go before those that wait. States and updates are
// left to another policy. Re-decided for every step that is appended, so it follows the mix; and the rates that are
// learnt while training (train --adapt) are in its estimates.
#include "core/policies/common/places.hpp"

namespace tandem {

class Adaptive final : public PlacedPolicy {
 public:
  explicit Adaptive(const Scenario& scenario) : PlacedPolicy(scenario, {}) {}

 protected:
  Places choose(const View& view, std::int32_t step) override {
    return best_places(step_costs(view.graph(), view.estimate(), step), {});
  }
};

}  // namespace tandem

TANDEM_POLICY(adaptive, Adaptive, "Places inputs and micro-batches on CPU, device or another host, by each step's mix",
              "states")
