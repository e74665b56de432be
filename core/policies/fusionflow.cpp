// FusionFlow (Kim et al., PVLDB 17(4), 2023): workers on the CPU prepare a batch; where they are what a step waits for,
// work of theirs is moved to the device, in time that it would stand idle.
#include "core/policies/common/places.hpp"

namespace tandem {

class FusionFlow final : public PlacedPolicy {
 public:
  explicit FusionFlow(const Scenario& scenario)
      : PlacedPolicy(scenario, {.transforms = true, .remote = false, .cpu = false}) {}

 protected:
  // On workers unless they are then busier than the device.
  Places choose(const View& view, std::int32_t step) override {
    const StepCosts costs = step_costs(view.graph(), view.estimate(), step);
    const double device = costs.device * static_cast<double>(costs.micro_batches) + costs.update;
    return {.transforms_on_workers = costs.decoding + costs.transforms <= device};
  }
};

}  // namespace tandem

TANDEM_POLICY(fusionflow, FusionFlow, "CPU workers, whose work moves to the device while it is idle", "states")
