// A case of primitives_test.cpp: a small module of a primitive's call or a few, and the same in functional LibTorch.
// One file a primitive in primitive_cases/, whose cases TANDEM_PRIMITIVE_CASES registers: no list names them.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/model/module.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem::testing {

using Tensors = std::vector<at::Tensor>;
using Locals = std::vector<LocalId>;

struct CaseInput {
  std::vector<std::int64_t> shape;
  // Integers of [0, below), of which there are no gradients; 0: normal numbers in the case's precision.
  std::int64_t below = 0;
  // Some of the integers, one in four, are this instead: a target that is ignored.
  std::int64_t sometimes = 0;
};

struct PrimitiveCase {
  std::string name;  // a test's: letters, digits and _
  std::vector<CaseInput> inputs;
  // Carried from step to step: after the inputs among what `build` and `reference` are given. The reference leaves it
  // as the next step finds it.
  std::vector<CaseInput> carried = {};
  bool goes_backward = true;
  // Of the module's inputs: its outputs. A loss is the only one.
  std::function<Locals(ModuleBuilder& m, const Locals& in)> build;
  // Of inputs and weights, in the order of the module's: its outputs. Under autograd.
  std::function<Tensors(const Tensors& in, const Tensors& weights)> reference;
  // Relative errors (of the norm) that are allowed; 0: equal to the bit. Below 0: no such case. State the reason.
  double fp32_error = 0, bf16_error = 0;
  // As torch's flop counter counts the reference; below 0: not stated.
  std::int64_t forward_flops = -1, backward_flops = -1;
  // What dropout's reference may ask for.
  static RandomKey random() { return {7, 3, 2, 1, 0, true}; }
};

inline void PrintTo(const PrimitiveCase& c, std::ostream* out) { *out << c.name; }

std::vector<PrimitiveCase>& primitive_cases();

struct RegisterCases {
  explicit RegisterCases(std::vector<PrimitiveCase> (*cases)()) {
    for (PrimitiveCase& c : cases()) primitive_cases().push_back(std::move(c));
  }
};

}  // namespace tandem::testing

// The last line of primitive_cases/<name>.cpp; `CASES`: a function that returns them.
#define TANDEM_PRIMITIVE_CASES(CASES) \
  static const tandem::testing::RegisterCases kRegistered(CASES);  // NOLINT(misc-use-anonymous-namespace)
