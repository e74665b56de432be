#include "core/policies/common/layer_stream.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/policies/common/layers.hpp"
#include "core/policies/common/program.hpp"

namespace tandem {
namespace {

// Where none hide it, the way holds up the run, and one layer at each of its stages keeps it busy.
std::int64_t layers_ahead(const View& view, const std::vector<Bucket>& of_step, const StateHomes& homes) {
  const auto layers = layer_times(view, of_step);
  CHECK(layers.size() == of_step.size(), "a layer is a bucket", layers.size(), of_step.size());
  const auto way_ns = [&](std::size_t l) {
    const ValueId parameter = of_step[l].parameter;
    if (!homes.lives_on(view, parameter, Tier::Disk)) return layers[l].parameter_copy_ns;
    return layers[l].parameter_copy_ns + view.estimate().copy_ns(Engine::DiskRead, view.graph().value(parameter).bytes);
  };
  std::int64_t most = 1;
  for (std::size_t l = 1; l < layers.size(); ++l) {
    std::int64_t hidden_ns = 0, ahead = 0;
    for (std::size_t before = l; before > 0 && hidden_ns < way_ns(l); ++ahead) hidden_ns += layers[--before].forward_ns;
    if (hidden_ns >= way_ns(l)) most = std::max(most, ahead);
  }
  return most;
}

// Parameters that are on the device, and on disk, leave the host.
void drop_on_host(const View& view, Decisions& decisions, const StateHomes& homes, OpId op) {
  for (ValueId read : view.graph().op(op).reads)
    if (homes.lives_on(view, read, Tier::Disk) && view.valid(read, Tier::Device))
      decisions.release(read, Tier::HostPinned);
}

void fetch_to_host(const View& view, Decisions& decisions, const StateHomes& homes, std::size_t ops) {
  for (OpId op : view.compute_program().first(ops))
    for (ValueId read : view.graph().op(op).reads) {
      if (!homes.lives_on(view, read, Tier::Disk) || view.valid(read, Tier::Device)) continue;
      if (decisions.copy(read, Tier::HostPinned) != Reply::Issued) return;
    }
}

void fetch_to_device(const View& view, Decisions& decisions, const StateHomes& homes, std::size_t ops) {
  prefetch_parameters(view, decisions, ops);
  for (OpId op : view.compute_program().first(ops)) drop_on_host(view, decisions, homes, op);
}

}  // namespace

void LayerStream::begin(const View& view, const std::vector<Bucket>& of_step, const StateHomes& homes) {
  if (!ahead_) ahead_ = layers_ahead(view, of_step, homes);
}

// What was loaded passed through the host on its way home.
void LayerStream::follow(const View& view, Decisions& decisions, const StateHomes& homes) {
  const Graph& graph = view.graph();
  loaded_ = std::max(loaded_, graph.era().first_op);
  for (; !all_loaded_ && loaded_ < graph.op_count(); ++loaded_) {
    all_loaded_ = graph.op(loaded_).step != kNone;
    if (all_loaded_) break;
    for (const Write& write : graph.op(loaded_).writes) homes.leave_host(view, decisions, write.value);
  }
  while (!running_.empty() && view.finished(running_.front())) running_.pop_front();
}

bool LayerStream::advance(const View& view, Decisions& decisions, const StateHomes& homes, Activations& activations,
                          bool may_run) {
  CHECK(ahead_ && *ahead_ >= 0, "a stream begins before it goes on");
  const std::size_t ops = ops_ahead(view, *ahead_);
  fetch_to_host(view, decisions, homes, ops_ahead(view, 2 * *ahead_));
  fetch_to_device(view, decisions, homes, ops);
  if (!may_run || ops == 0 || view.computing() >= kComputeAhead) return false;
  const OpId next = view.compute_program().front();
  if (decisions.run(next) != Reply::Issued) return false;
  if (!goes_between_stages(view, next)) running_.push_back(next);
  activations.move(view, decisions);
  pass(view, decisions, homes, next, ops - 1);
  return true;
}

// How many of the next ops belong to the layer that computes, or to so many layers after it.
std::size_t LayerStream::ops_ahead(const View& view, std::int64_t layers) const {
  std::size_t ops = 0;
  std::int64_t entered = 0;
  std::int32_t last = kNone;
  const auto enters = [&](OpId op) {
    const std::int32_t layer = view.graph().op(op).layer;
    if (entered == 0 || layer != last) ++entered;
    last = layer;
    return entered <= 1 + layers;
  };
  std::for_each(running_.begin(), running_.end(), enters);
  for (OpId op : view.compute_program()) {
    if (!enters(op)) break;
    ++ops;
  }
  return ops;
}

// Drops the op's parameters, unless one of the next ops reads them.
void LayerStream::pass(const View& view, Decisions& decisions, const StateHomes& homes, OpId op,
                       std::size_t ops) const {
  drop_on_host(view, decisions, homes, op);
  const auto program = view.compute_program().first(std::min(ops, view.compute_program().size()));
  for (ValueId read : view.graph().op(op).reads) {
    const bool again = std::any_of(program.begin(), program.end(), [&](OpId later) {
      const auto& reads = view.graph().op(later).reads;
      return std::find(reads.begin(), reads.end(), read) != reads.end();
    });
    if (view.graph().tensor_of(read).role == Role::Parameter && !again) decisions.release(read, Tier::Device);
  }
}

}  // namespace tandem
