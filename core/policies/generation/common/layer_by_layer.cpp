#include "core/policies/generation/common/layer_by_layer.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/transforms/generation/generation_keys.hpp"

namespace tandem {
namespace {

bool is_weight(const Graph& graph, ValueId value) { return graph.tensor_of(value).role == Role::Parameter; }

}  // namespace

LayerByLayer::LayerByLayer(const Scenario& scenario, const std::string& name, const LayerByLayerOptions& options)
    : options_(options) {
  if (!generates(scenario))
    throw ConfigError("policy.name: " + name + " runs a network that generates; allowed: with `generate`");
  if (options.weights == Tier::Disk && scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes == 0)
    throw ConfigError("policy.weights: the machine has no disk; allowed: host, device");
}

Tier LayerByLayer::home(const View& view, TensorId tensor) {
  if (view.graph().tensor(tensor).role != Role::Parameter) return Tier::HostPinned;
  return homes_.give(tensor, options_.weights);
}

// A blocking product goes on when all before is done, copies too.
bool LayerByLayer::waits(const View& view, OpId next) const {
  if (!options_.blocking) return false;
  const auto& reads = view.graph().op(next).reads;
  return std::any_of(reads.begin(), reads.end(), [&](ValueId read) {
    return is_weight(view.graph(), read) && !view.valid(read, Tier::Device) && view.computing() > 0;
  });
}

void LayerByLayer::decide(const View& view, Decisions& decisions) {
  if (!homes_.loaded(view)) return;
  while (view.computing() < kComputeAhead && !view.compute_program().empty()) {
    const OpId next = view.compute_program().front();
    if (waits(view, next) || decisions.run(next) != Reply::Issued) return;
    CHECK(view.issued(next), "the program stands still at", view.graph().op_name(next));
    leave(view, decisions, view.graph().op(next));
    fetch_ahead(view, decisions);
  }
}

void LayerByLayer::fetch_ahead(const View& view, Decisions& decisions) const {
  std::set<ValueId> weights;
  for (const OpId id : view.compute_program())
    for (const ValueId read : view.graph().op(id).reads) {
      if (!is_weight(view.graph(), read)) continue;
      weights.insert(read);
      if (weights.size() > options_.ahead) return;
      if (view.valid(read, Tier::Device)) continue;
      if (!view.valid(read, Tier::HostPinned)) {
        if (decisions.copy(read, Tier::HostPinned) != Reply::Issued) return;
        continue;
      }
      if (!view.arrived(read, Tier::HostPinned) || decisions.copy(read, Tier::Device) != Reply::Issued) return;
    }
}

// But what the next op reads as well.
void LayerByLayer::leave(const View& view, Decisions& decisions, const Op& op) const {
  if (options_.weights == Tier::Device) return;
  const auto program = view.compute_program();
  for (const ValueId read : op.reads) {
    if (!is_weight(view.graph(), read)) continue;
    if (!program.empty() && std::ranges::count(view.graph().op(program.front()).reads, read) > 0) continue;
    decisions.release(read, Tier::Device);
    if (options_.weights == Tier::Disk) decisions.release(read, Tier::HostPinned);
  }
}

Tier weights_option(const Scenario& scenario) {
  const std::string where = choice_option(scenario, "weights", {"host", "device", "disk"});
  return where == "host" ? Tier::HostPinned : where == "device" ? Tier::Device : Tier::Disk;
}

}  // namespace tandem
