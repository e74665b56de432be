// Adam (Kingma and Ba, ICLR 2015), its weight decay a part of the gradient.
#include "core/optimizers/optimizer.hpp"

TANDEM_OPTIMIZER(
    adam, .summary = "Adam: weight decay is added to the gradient",
    .states = [](const OptimizerOptions&) -> std::vector<std::string> {
      return {"adam_m", "adam_v"};
    },
    .quantises = true, .library_updates = true)
