#include "plan/block_figures.hpp"

#include <algorithm>
#include <optional>

#include "core/graph/graph.hpp"
#include "core/graph/rewrite.hpp"
#include "core/machine/cost_model.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

constexpr double kNs = 1e-9;

Role role_of(const Graph& graph, ValueId value) { return graph.tensor_of(value).role; }

double bytes_of(const Graph& graph, ValueId value) { return static_cast<double>(graph.value(value).bytes); }

Graph graph_of(const Scenario& scenario, std::int32_t steps) {
  Graph graph;
  const auto source = find_workload(scenario.workload.family)->make(scenario, {}, 0);
  source->prologue(graph);
  for (std::int32_t step = 0; step < steps; ++step) source->append_step(graph, 0);
  return graph;
}

bool attends(const Op& op) { return op.may_run_on(Engine::CpuCompute); }

// Of what an op reads, and of what it makes anew: of one role, or of all.
double read_bytes(const Graph& graph, const Op& op, std::optional<Role> role = std::nullopt) {
  double bytes = 0;
  for (const ValueId read : op.reads)
    if (!role || role_of(graph, read) == role) bytes += bytes_of(graph, read);
  return bytes;
}
double made_bytes(const Graph& graph, const Op& op, std::optional<Role> role = std::nullopt) {
  double bytes = 0;
  for (const Write& write : op.writes)
    if (write.reuses == kNone && (!role || role_of(graph, write.value) == role)) bytes += bytes_of(graph, write.value);
  return bytes;
}

PassFigures pass_figures(const Graph& graph, std::int32_t step, const CostModel& cost) {
  PassFigures pass;
  bool behind_attention = false;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.step != step || !op.may_run_on(Engine::Compute)) continue;
    const double s = kNs * static_cast<double>(cost.run_ns(graph, op.work, Engine::Compute));
    if (!attends(op)) {
      if (!behind_attention)
        pass.hidden_bytes += read_bytes(graph, op, Role::Activation);  // which waited for other batches
      behind_attention = false;
      pass.compute_s += s;
      continue;
    }
    behind_attention = true;
    pass.query_bytes += read_bytes(graph, op, Role::Activation) + made_bytes(graph, op, Role::Activation);
    pass.attention_s += s;
    pass.cpu_attention_s += kNs * static_cast<double>(cost.run_ns(graph, op.work, Engine::CpuCompute));
    pass.cache_read_bytes += read_bytes(graph, op, Role::KvCache);
    for (const Write& write : op.writes)
      if (role_of(graph, write.value) == Role::KvCache) pass.cache_written_bytes += bytes_of(graph, write.value);
  }
  return pass;
}

void add_sizes(const Graph& graph, BlockFigures& of) {
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.role != Role::Parameter) continue;
    of.weight_bytes += static_cast<double>(tensor.bytes);
    of.largest_weight_bytes = std::max(of.largest_weight_bytes, static_cast<double>(tensor.bytes));
  }
  double layers = 0;
  bool behind_attention = false;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.step != 0) continue;
    if (attends(op)) layers += 1;
    if (!attends(op) && !behind_attention)
      of.hidden_bytes = std::max(of.hidden_bytes, read_bytes(graph, op, Role::Activation));
    behind_attention = attends(op);
    of.at_work_bytes = std::max(
        of.at_work_bytes, static_cast<double>(op.workspace_bytes) + read_bytes(graph, op) + made_bytes(graph, op));
  }
  of.cpu_attends = layers > 0;
  of.layers = std::max(layers, 1.0);
}

}  // namespace

BlockFigures block_figures(Scenario scenario) {
  scenario.workload.micro_batches = 1;
  const GenerationSizes sizes(scenario.workload);
  BlockFigures of;
  of.new_tokens = sizes.new_tokens;
  {
    const Graph graph = graph_of(scenario, 1);
    of.prompts = pass_figures(graph, 0, CostModel(scenario.machine));
    add_sizes(graph, of);
  }
  of.cache_bytes = of.prompts.cache_written_bytes * static_cast<double>(sizes.prompt + sizes.new_tokens) /
                   static_cast<double>(sizes.prompt);
  if (sizes.new_tokens < 2) return of;
  // A text half done is like one of a longer prompt at its first token.
  KeyValues& keys = scenario.workload.generate;
  keys["prompt"] = sizes.prompt + sizes.new_tokens / 2 - 1;
  keys["new_tokens"] = 2;
  scenario.steps = 2;
  of.token = pass_figures(graph_of(scenario, 2), 1, CostModel(scenario.machine));
  return of;
}

}  // namespace tandem
