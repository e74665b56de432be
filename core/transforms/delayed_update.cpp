// The update keeps the old version, and a checkpoint saves it: parts of the step ask StepContext::delayed_update.
#include "core/transforms/delayed_update.hpp"

#include "core/step/context.hpp"
#include "core/transforms/common/entry.hpp"

namespace tandem {
namespace {

class DelayedUpdate final : public Rewrite {
 public:
  std::string_view name() const override { return "delayed_update"; }
  bool approximate() const override { return true; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    context.delayed_update = true;
    return std::make_unique<StepTransform>();
  }
};

}  // namespace

std::shared_ptr<const Rewrite> delayed_update() { return std::make_shared<DelayedUpdate>(); }

}  // namespace tandem

TANDEM_TRANSFORM(delayed_update, nullptr, "Forward and backward use the parameters from before the last optimizer step",
                 "policy.delayed_update: true")
