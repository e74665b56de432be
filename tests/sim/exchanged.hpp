// What the first rank of a simulated run exchanges with others in its first step, and keeps for its backward.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/checked_ranks.hpp"

namespace tandem::testing {

struct Exchanged {
  // By phase and body: of what a collective has most of, what it reads or what it writes.
  std::map<std::pair<std::string, std::string>, std::int64_t> bytes;
  std::map<std::string, std::size_t> ranks;  // by phase: of its largest collective
  std::int64_t parameter_bytes = 0;          // that the first rank has
  std::int64_t kept_bytes = 0;               // activations that forward makes and backward reads
  std::int64_t flops = 0;                    // of all ranks
  std::int64_t peak_bytes = 0;
  double step_s = 0;

  std::int64_t bytes_of(const std::string& phase, const std::string& body) const {
    const auto found = bytes.find({phase, body});
    return found == bytes.end() ? 0 : found->second;
  }
  std::int64_t ranks_of(const std::string& phase) const {
    const auto found = ranks.find(phase);
    return found == ranks.end() ? 0 : static_cast<std::int64_t>(found->second);
  }
  // What goes by a link, but for the factor (ranks - 1) / ranks.
  std::int64_t moved(const std::string& phase) const {
    return 2 * bytes_of(phase, "all_reduce_sum") + bytes_of(phase, "all_gather") +
           bytes_of(phase, "reduce_scatter_sum") + bytes_of(phase, "all_to_all");
  }
};

namespace detail {

inline void count_first_rank(const Graph& graph, Exchanged& out) {
  std::set<ValueId> made, kept;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.step != 0) continue;
    if (op.phase == Phase::Forward && op.micro_batch == 0)
      for (const Write& write : op.writes)
        if (graph.tensor_of(write.value).role == Role::Activation) made.insert(write.value);
    if (op.phase != Phase::Forward)
      for (const ValueId read : op.reads)
        if (made.contains(read)) kept.insert(read);
    if (op.engine != Engine::Collective) continue;
    std::size_t& ranks = out.ranks[std::string(name_of(op.phase))];
    ranks = std::max(ranks, graph.group(op.match_group).size());
    std::int64_t& bytes = out.bytes[{std::string(name_of(op.phase)), graph.work_of(op).body}];
    const std::int64_t read = op.reads.empty() ? 0 : graph.value(op.reads.front()).bytes;
    const std::int64_t written = op.writes.empty() ? 0 : graph.value(op.writes.front().value).bytes;
    bytes += std::max(read, written);
  }
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (graph.tensor(id).role == Role::Parameter) out.parameter_bytes += graph.tensor(id).bytes;
  for (const ValueId value : kept) out.kept_bytes += graph.value(value).bytes;
}

}  // namespace detail

inline Exchanged exchanged_of(const Scenario& scenario) {
  Simulation simulation(scenario);
  for (const CheckedRank& rank : run_checked(simulation)) EXPECT_EQ(rank.violation, "");
  Exchanged out;
  for (Rank rank = 0; rank < simulation.rank_count(); ++rank) {
    const Graph& graph = simulation.graph(rank);
    for (OpId id = 0; id < graph.op_count(); ++id) out.flops += graph.work_of(graph.op(id)).flops();
  }
  detail::count_first_rank(simulation.graph(0), out);
  const Analysis analysis = analyse(simulation.record());
  out.peak_bytes = analysis.peak_bytes.front().second;
  out.step_s = analysis.step_s.median;
  return out;
}

// Why a scenario is refused; "": it is not.
inline std::string refusal(const Scenario& s) {
  try {
    exchanged_of(s);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace tandem::testing
