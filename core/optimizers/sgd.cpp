// Stochastic gradient descent as torch.optim.SGD, with momentum where it is given.
#include "core/optimizers/optimizer.hpp"

TANDEM_OPTIMIZER(
    sgd, .summary = "Gradient descent, with optimizer.momentum; weight decay is added to the gradient",
    .states = [](const OptimizerOptions& o) -> std::vector<std::string> {
      if (o.momentum == 0) return {};
      return {"momentum"};
    })
