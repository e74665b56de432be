// Row by row (Sheng et al., ICML 2023, section 4.1, figure 3a): the order that systems before FlexGen keep. A batch
// goes through all layers before the next one does, so that weights are brought for each batch; what is kept of a batch
// is its keys and values alone. `prefetch` layers come in while another computes.
#include "core/transforms/row_by_row.hpp"

#include "core/policies/common/options.hpp"
#include "core/policies/generation/common/entry.hpp"
#include "core/policies/generation/common/layer_by_layer.hpp"

namespace tandem {

class RowByRow final : public LayerByLayer {
 public:
  explicit RowByRow(const Scenario& scenario)
      : LayerByLayer(scenario, "row_by_row",
                     {.weights = weights_option(scenario),
                      .ahead = static_cast<std::size_t>(int_option(scenario, "prefetch", 0, 1000, 1))}) {}
  PolicyTraits traits() const override { return {.rewrites = {row_by_row()}}; }
};

}  // namespace tandem

TANDEM_GENERATING_POLICY(row_by_row, RowByRow, "Generates for one batch after another, with weights that come for each",
                         "weights", "prefetch")
