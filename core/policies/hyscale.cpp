// HyScale-GNN (Lin et al. 2023, arXiv 2303.00158): the CPU trains beside the device, each on a share of a step's batch,
// here of its micro-batches; the share follows the rates of both, and batches are prepared ahead in two stages
// (prefetch).
#include "core/policies/common/options.hpp"
#include "core/policies/common/places.hpp"

namespace tandem {

class HyScale final : public PlacedPolicy {
 public:
  explicit HyScale(const Scenario& scenario)
      : PlacedPolicy(scenario, {.transforms = false, .remote = false, .cpu = true}),
        share_(int_or_auto_option(scenario, "cpu_micro_batches", 0, 65536)) {}

 protected:
  Places choose(const View& view, std::int32_t step) override {
    if (share_) return {.cpu_micro_batches = *share_};
    const StepCosts costs = step_costs(view.graph(), view.estimate(), step);
    return best_places(costs, {.transforms = false, .remote = false, .cpu = true});
  }

 private:
  std::optional<std::int64_t> share_;
};

}  // namespace tandem

TANDEM_POLICY(hyscale, HyScale, "The CPU computes some of a step's micro-batches beside the device", "states",
              "cpu_micro_batches")
