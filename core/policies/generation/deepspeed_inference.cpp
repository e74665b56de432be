// ZeRO-Inference (Aminabadi et al., SC 2022, arXiv 2207.00032; DeepSpeed's post of 2022-09-10): weights live on the
// host, pinned, or on disk, and come layer by layer; keys, values and hidden states stay on the device, so that a large
// batch hides what comes. `prefetch` layers come in while another computes; its fetch of the layer at hand does not
// wait for what computes.
#include "core/policies/common/options.hpp"
#include "core/policies/generation/common/entry.hpp"
#include "core/policies/generation/common/layer_by_layer.hpp"

namespace tandem {

class DeepSpeedInference final : public LayerByLayer {
 public:
  explicit DeepSpeedInference(const Scenario& scenario)
      : DeepSpeedInference(scenario, int_option(scenario, "prefetch", 0, 1000, 1)) {}

 private:
  DeepSpeedInference(const Scenario& scenario, std::int64_t prefetch)
      : LayerByLayer(scenario, "deepspeed_inference",
                     {.weights = weights_option(scenario),
                      .ahead = static_cast<std::size_t>(prefetch),
                      .blocking = prefetch == 0}) {}
};

}  // namespace tandem

TANDEM_GENERATING_POLICY(deepspeed_inference, DeepSpeedInference,
                         "Generates with weights that come layer by layer, some ahead (ZeRO-Inference)", "weights",
                         "prefetch")
