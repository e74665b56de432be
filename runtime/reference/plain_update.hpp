// Optimizers in fp32 as plain LibTorch programs write them, tensor by tensor: what the rules of runtime/optimizer and
// the bodies are compared with. Must not know how parameters are stored elsewhere.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem {

// Of one parameter: adam and adamw m and v, sgd and lion one momentum, adafactor a row's and a column's means, or one.
// Made by the first update.
using PlainState = std::vector<at::Tensor>;

// Steps count from 1. Throws ConfigError for an optimizer that it lacks.
void plain_update(const OptimizerOptions& options, double learning_rate, double weight_decay, std::int64_t step,
                  const at::Tensor& parameter, const at::Tensor& gradient, PlainState& state);

}  // namespace tandem
