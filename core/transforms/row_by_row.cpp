// Row by row, as FlexGen's authors call it (Sheng et al., ICML 2023, figure 3a): weights are brought for each batch.
// generation/generation_source.cpp keeps the order.
#include "core/transforms/row_by_row.hpp"

#include "core/step/transform.hpp"
#include "core/transforms/common/entry.hpp"

namespace tandem {
namespace {

class RowByRowOrder final : public Rewrite {
 public:
  std::string_view name() const override { return kRowByRow; }
  std::unique_ptr<StepTransform> make(StepContext&) const override { return std::make_unique<StepTransform>(); }
};

}  // namespace

std::shared_ptr<const Rewrite> row_by_row() { return std::make_shared<RowByRowOrder>(); }

}  // namespace tandem

TANDEM_TRANSFORM(row_by_row, nullptr, "What generates takes a batch through all layers before the next one",
                 "policy.name: row_by_row")
