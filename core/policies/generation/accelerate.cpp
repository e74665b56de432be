// Hugging Face Accelerate's cpu_offload and disk_offload (github huggingface/accelerate, hooks.py, AlignDevicesHook):
// before a module computes, its weights come from memory that is not pinned, and the call waits for them; after it they
// are dropped. Nothing comes in ahead. Keys, values and hidden states stay on the device.
#include "core/policies/generation/common/entry.hpp"
#include "core/policies/generation/common/layer_by_layer.hpp"

namespace tandem {

class Accelerate final : public LayerByLayer {
 public:
  explicit Accelerate(const Scenario& scenario)
      : LayerByLayer(scenario, "accelerate", {.weights = weights_option(scenario), .ahead = 0, .blocking = true}) {}
};

}  // namespace tandem

TANDEM_GENERATING_POLICY(accelerate, Accelerate,
                         "Generates with weights that come for each module, and wait (Hugging Face)", "weights")
