// Adafactor (Shazeer and Stern, ICML 2018, arXiv 1804.04235) with the options of torch.optim.Adafactor: for a matrix,
// means of squared gradients by row and by column instead of one for each element; for a vector one for each element.
// Matrices of a field with more dimensions are its last two.
#include "core/formats/layout.hpp"
#include "core/optimizers/optimizer.hpp"

namespace tandem {
namespace {

std::shared_ptr<const Layout> factored(const Layout& bucket) {
  LayoutBuilder layout;
  for (const Field& field : bucket.fields) {
    if (field.shape.size() < 2) {
      layout.add(field.name + ".variance", field.shape);
      continue;
    }
    auto rows = field.shape, columns = field.shape;
    rows.back() = 1;
    columns[columns.size() - 2] = 1;
    layout.add(field.name + ".row", rows).add(field.name + ".column", columns);
  }
  return layout.build();
}

}  // namespace
}  // namespace tandem

// Its passes: squares by row and by column, the product of both and what becomes of it (5 passes that read and write),
// two norms, and the sum with the parameter.
TANDEM_OPTIMIZER(
    adafactor, .summary = "Adafactor: squared gradients by row and by column; decoupled weight decay",
    .states = [](const OptimizerOptions&) -> std::vector<std::string> { return {"adafactor"}; },
    .state_layout = factored, .passes_bytes = 72)
