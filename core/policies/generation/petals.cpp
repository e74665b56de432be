// Petals (Borzunov et al., ACL 2023 demonstrations, arXiv 2209.01188): layers of a network live on the GPUs of several
// machines, which a slow network joins; hidden states go from one to the next, and a batch goes on while others are
// elsewhere. Each machine keeps its layers' weights, and their keys and values, on its device. parallel.pipeline says
// among how many, workload.micro_batches how many batches are under way.
#include "core/policies/generation/common/entry.hpp"
#include "core/policies/generation/common/layer_by_layer.hpp"

namespace tandem {

class Petals final : public LayerByLayer {
 public:
  static constexpr bool kOffloads = false;
  explicit Petals(const Scenario& scenario) : LayerByLayer(scenario, "petals", {.weights = Tier::Device}) {}
};

}  // namespace tandem

TANDEM_GENERATING_POLICY(petals, Petals, "Generates with layers on the GPUs of several machines, one after another")
