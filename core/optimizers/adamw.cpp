// AdamW (Loshchilov and Hutter, ICLR 2019): Adam whose weight decay shrinks the parameter itself.
#include "core/optimizers/optimizer.hpp"

TANDEM_OPTIMIZER(
    adamw, .summary = "Adam with decoupled weight decay",
    .states = [](const OptimizerOptions&) -> std::vector<std::string> {
      return {"adam_m", "adam_v"};
    },
    .quantises = true, .library_updates = true)
