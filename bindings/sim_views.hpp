// What a policy in Python sees and says: the graph's tensors, values and ops as objects, View and Decisions with
// checked arguments. Must not know who decides, nor worlds.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "core/scheduler/policy.hpp"

namespace tandem {

// Graphs forget what is over, and Python keeps what it likes: these hold copies of what is forgotten. The graph's
// tensors never are.
struct PythonTensor {
  TensorId id = kNone;
  const Tensor* tensor = nullptr;
};
struct PythonValue {
  ValueId id = kNone;
  std::int32_t version = 0;
  std::int64_t bytes = 0;
  PythonTensor tensor;
};
struct PythonOp {
  OpId id = kNone;
  std::string name;
  std::int64_t flops = 0;
  Op op;
  std::vector<PythonValue> reads, writes;
};

// A copy of each is as good: both name a scheduler.
struct PythonDecisions {
  View view;
  Decisions decisions;
};

PythonTensor python_tensor(const Graph& graph, TensorId id);

// "device", "host" and "host_pinned", "host_pageable", "disk". Throws nanobind's value_error, which names them.
Tier tier_named(const std::string& name);

// Adds the classes of a policy's arguments: python/tandem/simulation/views.py says what each of their names is.
void add_views(nanobind::module_& m);

}  // namespace tandem
