#include "core/policies/common/step_memory.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// What is on the device while the ops of a graph run one after the other.
class Tally {
 public:
  Tally(const Graph& graph, std::initializer_list<Role> roles)
      : graph_(graph),
        roles_(roles),
        readers_(static_cast<std::size_t>(graph.value_count())),
        here_(static_cast<std::size_t>(graph.value_count())) {}

  void place(ValueId value, bool there) {
    const bool counts = std::find(roles_.begin(), roles_.end(), graph_.tensor_of(value).role) != roles_.end();
    if (here_[static_cast<std::size_t>(value)] == there || !counts) return;
    here_[static_cast<std::size_t>(value)] = there;
    live_ += there ? graph_.value(value).bytes : -graph_.value(value).bytes;
    CHECK(live_ >= 0, "more leaves than has come", graph_.value_name(value), live_);
  }
  void run(const Op& op) {
    for (ValueId read : op.reads) place(read, true);
    for (const Write& write : op.writes) place(write.value, true);
    last_ = live_ + op.workspace_bytes;
    peak_ = std::max(peak_, last_);
    for (ValueId read : op.reads)
      if (pass(read)) place(read, false);
    for (const Write& write : op.writes)
      if (write.reuses != kNone) place(write.reuses, false);
  }
  // One of its readers has read it, here or elsewhere; true if it was the last.
  bool pass(ValueId value) {
    std::int32_t& passed = readers_[static_cast<std::size_t>(value)];
    CHECK(passed < graph_.value(value).readers, "is read more often than it has readers:", graph_.value_name(value));
    return ++passed == graph_.value(value).readers;
  }
  std::int64_t peak() const { return peak_; }
  std::int64_t last() const { return last_; }  // while the last op ran

 private:
  const Graph& graph_;
  std::vector<Role> roles_;
  std::vector<std::int32_t> readers_;
  std::vector<bool> here_;
  std::int64_t live_ = 0, peak_ = 0, last_ = 0;
};

// Layers whose saved activations leave after their forward.
class Offloaded {
 public:
  Offloaded(const Graph& graph, const std::vector<std::int32_t>& layers) : graph_(graph), layers_(layers) {
    CHECK(std::is_sorted(layers_.begin(), layers_.end()), "layers in order", layers_.size());
    for (OpId id = graph.era().first_op; id < graph.op_count(); ++id)
      if (const Op& op = graph.op(id); op.phase == Phase::Backward && away(op))
        backwards_[{op.micro_batch, op.layer}] = id;
  }
  void leave_after(const Op& op, Tally& tally) const {
    if (op.phase != Phase::Forward || !away(op)) return;
    for (ValueId value : saved_for(graph_, graph_.op(backwards_.at({op.micro_batch, op.layer}))))
      tally.place(value, false);
  }

 private:
  bool away(const Op& op) const { return std::binary_search(layers_.begin(), layers_.end(), op.layer); }

  const Graph& graph_;
  const std::vector<std::int32_t>& layers_;
  std::map<std::pair<std::int32_t, std::int32_t>, OpId> backwards_;  // by micro-batch and layer
};

// Bytes by layer of the tensors of a role.
std::vector<std::int64_t> bytes_by_layer(const Graph& graph, Role role) {
  std::vector<std::int64_t> bytes;
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& tensor = graph.tensor(id);
    // An optimizer may keep no states: then layers that are updated have none.
    const bool counts = tensor.role == role || (role == Role::OptimizerState && tensor.role == Role::Gradient);
    if (!counts || tensor.layer < 0) continue;
    bytes.resize(std::max(bytes.size(), static_cast<std::size_t>(tensor.layer) + 1));
    if (tensor.role == role) bytes[static_cast<std::size_t>(tensor.layer)] += tensor.bytes;
  }
  return bytes;
}

using Layers = std::vector<std::int64_t>;

std::int64_t sum(Layers::const_iterator begin, Layers::const_iterator end) {
  return std::accumulate(begin, end, std::int64_t{0});
}

// The most that so many layers in a row take, from `first` on.
std::int64_t largest_run(const Layers& bytes, std::int32_t first, std::int64_t layers) {
  CHECK(first >= 0 && first <= std::ssize(bytes) && layers >= 0, first, bytes.size(), layers);
  const auto count = std::min(std::ssize(bytes) - first, layers);
  std::int64_t most = 0;
  for (auto at = bytes.begin() + first; count > 0 && bytes.end() - at >= count; ++at)
    most = std::max(most, sum(at, at + count));
  return most;
}

// Of the layers that do not stay, from the largest on.
Layers streamed_parameters(const Layers& bytes, std::int32_t resident) {
  Layers streamed(bytes.begin() + std::min<std::ptrdiff_t>(resident, std::ssize(bytes)), bytes.end());
  std::sort(streamed.begin(), streamed.end(), std::greater<>());
  return streamed;
}

// All where they are 16 bits wide, or codes, and stay on the device (if they leave room enough, or, as only gradients
// leave, at all), beside two of those that are wider; else those of two ops, one of them prefetched, or as many as have
// buffers, and of layers that stay.
std::int64_t parameter_bytes(const Graph& graph, std::int64_t capacity_bytes, const StatesOnDevice& states) {
  const Layers bytes = bytes_by_layer(graph, Role::Parameter);
  const std::int32_t resident = states.resident;
  if (bytes.empty()) return 0;
  CHECK(resident >= 0 && resident <= std::ssize(bytes) && states.buffers.value_or(0) >= 0, resident, bytes.size());
  if (states.buffers) {
    const Layers streamed = streamed_parameters(bytes, resident);
    return sum(bytes.begin(), bytes.begin() + resident) +
           sum(streamed.begin(), streamed.begin() + std::min<std::ptrdiff_t>(*states.buffers, std::ssize(streamed)));
  }
  std::int64_t narrow = 0, wide = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& t = graph.tensor(id);
    if (t.role != Role::Parameter) continue;
    if (size_of(t.type) <= 2)
      narrow += t.bytes;
    else
      wide = std::max(wide, t.bytes);
  }
  if (narrow > 0 && narrow <= capacity_bytes / (states.gradients_leave ? 1 : 2)) return narrow + 2 * wide;
  return 2 * *std::max_element(bytes.begin(), bytes.end()) + sum(bytes.begin(), bytes.begin() + resident);
}

}  // namespace

std::vector<ValueId> saved_for(const Graph& graph, const Op& backward) {
  CHECK(backward.phase == Phase::Backward, graph.label(backward.label), name_of(backward.phase));
  const auto left_by_forward = [&](ValueId value) {
    return graph.tensor_of(value).role == Role::Activation &&
           graph.op(graph.value(value).producer).phase == Phase::Forward;
  };
  std::vector<ValueId> values;
  for (const ValueId read : backward.reads) {
    if (left_by_forward(read)) values.push_back(read);
    const Op& producer = graph.op(graph.value(read).producer);
    if (producer.phase == Phase::Gather)
      std::copy_if(producer.reads.begin(), producer.reads.end(), std::back_inserter(values), left_by_forward);
  }
  return values;
}

std::int64_t activation_peak(const Graph& graph, const std::vector<std::int32_t>& offloaded_layers,
                             std::int32_t resident, bool others_leave) {
  const Offloaded offloaded(graph, offloaded_layers);
  const auto is_final = [&](ValueId value) {
    return graph.tensor_of(value).role == Role::Gradient && value == graph.tensor_of(value).latest;
  };
  const auto gone_when_written = [&](ValueId value) {
    return is_final(value) && graph.value(value).readers == 1 &&
           (others_leave || graph.tensor_of(value).layer < resident);
  };
  const auto gone_when_summed_up = [&](ValueId value) {
    return is_final(value) && others_leave && graph.tensor_of(value).layer >= resident;
  };
  Tally tally(graph, {Role::Activation, Role::Batch, Role::Gradient});
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.phase == Phase::Load && op.step == kNone) continue;
    if (op.phase == Phase::OptimizerStep && (others_leave || op.layer < resident)) continue;
    tally.run(op);
    for (const Write& write : op.writes)
      if (gone_when_written(write.value)) tally.place(write.value, false);
    if (op.phase == Phase::Reduce)
      for (ValueId read : op.reads)
        if (gone_when_summed_up(read)) tally.place(read, false);
    offloaded.leave_after(op, tally);
  }
  return tally.peak();
}

std::vector<std::int64_t> non_model_bytes(const Graph& graph, const std::vector<std::int32_t>& offloaded_layers) {
  const Offloaded offloaded(graph, offloaded_layers);
  Tally tally(graph, {Role::Activation, Role::Batch});
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(graph.op_count()));
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.engine == Engine::Loader) continue;
    tally.run(op);
    bytes[static_cast<std::size_t>(id)] = tally.last();
    offloaded.leave_after(op, tally);
  }
  return bytes;
}

std::int64_t peak_with_parameters_and_gradients(const Graph& graph, const std::vector<std::int32_t>& offloaded_layers) {
  const Offloaded offloaded(graph, offloaded_layers);
  Tally tally(graph, {Role::Activation, Role::Batch, Role::Gradient, Role::Parameter});
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id)
    for (ValueId read : graph.op(id).reads)
      if (graph.op(id).phase == Phase::OptimizerStep && graph.tensor_of(read).role == Role::Parameter) tally.pass(read);
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.engine == Engine::Loader || op.phase == Phase::OptimizerStep) continue;
    tally.run(op);
    offloaded.leave_after(op, tally);
  }
  return tally.peak();
}

std::int64_t lost_in_holes(const Graph& graph) {
  std::int64_t largest = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (const Tensor& tensor = graph.tensor(id); tensor.role == Role::Activation && tensor.versions > 0)
      largest = std::max(largest, tensor.bytes);
  return largest / 2;
}

namespace {

// A workspace needs a hole to itself, too, but is gone with its op: a quarter of the widest one, by the same
// experience. Of the graph of a step alone, as all of its ops are looked at.
std::int64_t lost_in_holes_of_step(const Graph& step) {
  std::int64_t widest = 0;
  for (OpId id = step.era().first_op; id < step.op_count(); ++id)
    widest = std::max(widest, step.op(id).workspace_bytes);
  return lost_in_holes(step) + widest / 4;
}

}  // namespace

std::int64_t bytes_left(const Graph& graph, std::int64_t capacity_bytes,
                        const std::vector<std::int32_t>& offloaded_layers, StatesOnDevice states) {
  const Layers bytes = bytes_by_layer(graph, Role::OptimizerState);
  return capacity_bytes - parameter_bytes(graph, capacity_bytes, states) -
         sum(bytes.begin(), bytes.begin() + states.resident) - largest_run(bytes, states.resident, states.streamed) -
         activation_peak(graph, offloaded_layers, states.resident, states.buffers || states.gradients_leave) -
         lost_in_holes_of_step(graph);
}

std::optional<std::int64_t> most_buffers(const Graph& graph, std::int64_t capacity_bytes,
                                         const std::vector<std::int32_t>& offloaded_layers, std::int32_t resident) {
  std::int64_t left =
      bytes_left(graph, capacity_bytes, offloaded_layers, {.resident = resident, .streamed = 0, .buffers = 0});
  if (left < 0) return std::nullopt;
  std::int64_t buffers = 0;
  for (std::int64_t bytes : streamed_parameters(bytes_by_layer(graph, Role::Parameter), resident)) {
    if ((left -= bytes) < 0) break;
    ++buffers;
  }
  return buffers;
}

std::int64_t bytes_left_beside_states(const Graph& graph, std::int64_t capacity_bytes,
                                      const std::vector<std::int32_t>& offloaded_layers) {
  const Layers parameters = bytes_by_layer(graph, Role::Parameter),
               states = bytes_by_layer(graph, Role::OptimizerState);
  return capacity_bytes - sum(parameters.begin(), parameters.end()) - sum(states.begin(), states.end()) -
         activation_peak(graph, offloaded_layers) - lost_in_holes_of_step(graph);
}

std::int32_t most_resident(const Graph& graph, std::int64_t capacity_bytes,
                           const std::vector<std::int32_t>& offloaded_layers, std::int64_t streamed,
                           bool gradients_leave) {
  std::int32_t fits = 0;
  for (auto high = static_cast<std::int32_t>(bytes_by_layer(graph, Role::OptimizerState).size()); fits < high;) {
    const std::int32_t middle = (fits + high + 1) / 2;
    const StatesOnDevice states{.resident = middle, .streamed = streamed, .gradients_leave = gradients_leave};
    if (bytes_left(graph, capacity_bytes, offloaded_layers, states) >= 0)
      fits = middle;
    else
      high = middle - 1;
  }
  return fits;
}

}  // namespace tandem
