// Places by a small network that `tandem train-policy` trained in the simulator: from each step's costs, as adaptive
// has them. Option `network`: its file; by default models/learned_placement.safetensors. Whatever it says, what is
// computed is the same.
#include "core/policies/common/options.hpp"
#include "core/policies/common/places.hpp"
#include "core/policies/learned/small_network.hpp"
#include "core/scenario/dirs.hpp"

namespace tandem {

class Learned final : public PlacedPolicy {
 public:
  explicit Learned(const Scenario& scenario) : PlacedPolicy(scenario, {}), network_(network_of(scenario)) {}

 protected:
  Places choose(const View& view, std::int32_t step) override {
    return network_.places(step_costs(view.graph(), view.estimate(), step));
  }

 private:
  static SmallNetwork network_of(const Scenario& scenario) {
    const std::string path = text_option(scenario, "network");
    if (path.empty()) return SmallNetwork::read(beside_or_installed("models/learned_placement.safetensors"));
    return SmallNetwork::read(beside_or_installed(beside_scenario(path, scenario)));
  }
  SmallNetwork network_;
};

}  // namespace tandem

TANDEM_POLICY(learned, Learned, "Places inputs and micro-batches as a network says that was trained in the simulator",
              "states", "network")
