// Partition asks StepContext::streams_parameters.
#include "core/transforms/stream_parameters.hpp"

#include "core/step/context.hpp"
#include "core/transforms/common/entry.hpp"

namespace tandem {
namespace {

class StreamParameters final : public Rewrite {
 public:
  std::string_view name() const override { return "stream_parameters"; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    context.streams_parameters = true;
    return std::make_unique<StepTransform>();
  }
};

}  // namespace

std::shared_ptr<const Rewrite> stream_parameters() { return std::make_shared<StreamParameters>(); }

}  // namespace tandem

TANDEM_TRANSFORM(stream_parameters, nullptr,
                 "Parameters that ranks divide are whole for one pass at a time, and not ahead of it",
                 "policy zero_infinity or mlp_offload with parameters off the device")
