// FastFlow (Um et al., PVLDB 16(5), 2023): profiles a few steps first, then decides whether workers of another host
// help, and how many of the items go there: those that leave neither side waiting for the other. Where this host's
// workers keep up with the device, none do.
#include "core/policies/common/options.hpp"
#include "core/policies/common/places.hpp"

namespace tandem {

class FastFlow final : public PlacedPolicy {
 public:
  explicit FastFlow(const Scenario& scenario)
      : PlacedPolicy(scenario, {.transforms = false, .remote = true, .cpu = false}),
        profiled_(static_cast<std::int32_t>(int_option(scenario, "profile_steps", 0, 1000, 3))) {}

 protected:
  Places choose(const View& view, std::int32_t step) override {
    if (step < profiled_) return {};
    const StepCosts costs = step_costs(view.graph(), view.estimate(), step);
    return best_places(costs, {.transforms = false, .remote = true, .cpu = false});
  }

 private:
  std::int32_t profiled_;
};

}  // namespace tandem

TANDEM_POLICY(fastflow, FastFlow, "Profiles first, then offloads decoding to another host's workers where that helps",
              "states", "profile_steps")
