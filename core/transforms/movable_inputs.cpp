#include "core/transforms/movable_inputs.hpp"

#include "core/step/context.hpp"
#include "core/transforms/common/entry.hpp"

namespace tandem {
namespace {

class MovableInputs final : public Rewrite {
 public:
  std::string_view name() const override { return "movable_inputs"; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    context.inputs_on_device = true;
    return std::make_unique<StepTransform>();
  }
};

}  // namespace

std::shared_ptr<const Rewrite> movable_inputs() { return std::make_shared<MovableInputs>(); }

}  // namespace tandem

TANDEM_TRANSFORM(movable_inputs, nullptr,
                 "Decoded items become numbers on the device or on workers, as the policy says",
                 "policy.name: adaptive, fusionflow, static_best, learned")
