// Scenarios of small networks and their whole graphs, for tests of workloads.
#pragma once

#include <string>

#include "core/graph/graph.hpp"
#include "core/scenario/scenario.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {

inline Scenario small_scenario(const std::string& family) {
  Scenario s;
  s.machine.cores = 2;
  s.steps = 3;
  WorkloadOptions& w = s.workload;
  w.family = family;
  w.layers = 3, w.hidden = 48, w.heads = 3, w.vocabulary = 257, w.sequence = 40, w.batch = 2;
  w.inputs = 61, w.classes = 10;
  w.prompt = 5, w.new_tokens = 6;
  w.layer_bytes = 6400, w.forward_ns = 1000, w.backward_ns = 2000, w.optimizer_ns = 3000;
  return s;
}

// All steps of a scenario; the source sees `result` after each.
inline Graph whole_graph(const Scenario& scenario, const GraphRequest& request = {}, std::int64_t result = 0) {
  Graph graph;
  const auto source = find_workload(scenario.workload.family)->make(scenario, request);
  source->prologue(graph);
  while (source->append_step(graph, result)) {
  }
  return graph;
}

}  // namespace tandem
