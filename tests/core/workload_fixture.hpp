// Scenarios of small networks and their whole graphs, for tests of workloads.
#pragma once

#include <string>
#include <utility>

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
  w.batch = 2;
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"layers", 3},     {"hidden", 48},     {"heads", 3},       {"vocabulary", 257}, {"sequence", 40},
      {"inputs", 61},    {"classes", 10},    {"prompt", 5},      {"new_tokens", 6},   {"layer_bytes", 6400},
      {"forward", 1000}, {"backward", 2000}, {"optimizer", 3000}};
  for (const auto& [key, size] : sizes) w.keys[key] = size;
  return s;
}

// All steps of a scenario; the source sees `result` after each.
inline Graph whole_graph(const Scenario& scenario, const Rewrites& rewrites = {}, std::int64_t result = 0,
                         Rank rank = 0) {
  Graph graph;
  const auto source = find_workload(scenario.workload.family)->make(scenario, rewrites, rank);
  source->prologue(graph);
  while (source->append_step(graph, result)) {
  }
  return graph;
}

}  // namespace tandem
