// Lion (Chen et al., NeurIPS 2023, arXiv 2302.06675): half of Adam's states, and steps of equal size in all elements.
#include "core/optimizers/optimizer.hpp"

TANDEM_OPTIMIZER(
    lion, .summary = "Lion: the sign of a momentum, one state a parameter; decoupled weight decay",
    .states = [](const OptimizerOptions&) -> std::vector<std::string> { return {"lion_m"}; }, .betas = {0.9, 0.99})
