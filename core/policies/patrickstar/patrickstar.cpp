// PatrickStar (Fang et al., TPDS 2022, arXiv 2108.05818): model data lives in chunks of one size, which come to the
// device when an op needs them, and leave it when activations need the room. How much is left for chunks is known for
// each op, from what a warm-up step took besides; who leaves is the chunk that the device needs again last (Belady). A
// gradient takes the place of its parameter, and moves with its chunk. After the backward Adam runs on the CPU, but for
// the first chunks, whose optimizer states fit into what all else leaves of the device (the margin space).
//
// A chunk moves when it is needed, and the device waits: its product moves chunks ahead only with_async_move, which is
// off by default (github Tencent/PatrickStar, client.py). With `overlap` chunks move behind the ops that are queued,
// and gradients, updates and parameters pass each other.
//
// In place of the warm-up step is the graph of the first step. A layer is never cut, so a chunk holds at least the
// largest one. On the device a gradient takes the bytes that its parameter leaves; on the host both have their own.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/check.hpp"
#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/step_memory.hpp"
#include "core/policies/common/uploads.hpp"
#include "core/policies/patrickstar/equal_chunks.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {

class PatrickStar final : public Policy {
 public:
  explicit PatrickStar(const Scenario& scenario)
      : overlap_(bool_option(scenario, "overlap", false)), activations_(scenario) {
    const Graph step = first_step(scenario, activations_.choice());
    require_updates(step, scenario);
    const auto offloaded =
        first_blocks(blocks_of(scenario), activations_.choice() ? activations_.choice()->offload : 0);
    pack(step, int_or_auto_option(scenario, "chunk_elements", 1, kMost));
    note_non_model_bytes(step, offloaded);
    const std::int64_t room = tier_capacity_bytes(scenario, Tier::Device) - lost_in_holes(step);
    const auto margin = int_or_auto_option(scenario, "margin_chunks", 0, kMost);
    margin_chunks_ =
        margin ? *margin : chunks_that_fit(step, room - peak_with_parameters_and_gradients(step, offloaded));
    room_ = room - margin_bytes(step, margin_chunks_);
  }

  PolicyTraits traits() const override {
    return {.rewrites = activations_.rewrites(), .bindings = activations_.bindings()};
  }

  Tier home(const View& view, TensorId tensor) override {
    const Tensor& t = view.graph().tensor(tensor);
    return t.role == Role::OptimizerState && in_margin(t.layer) ? Tier::Device : Tier::HostPinned;
  }

  void decide(const View& view, Decisions& decisions) override {
    follow(view);
    batches_.fetch(view, decisions);
    while (updates(view) ? update(view, decisions) : advance(view, decisions)) {
    }
  }

 private:
  static constexpr std::int64_t kMost = std::int64_t{1} << 50;

  struct Chunk {
    std::vector<ValueId> here;  // parameters and gradients that were brought to, or made on, the device
    std::deque<OpId> uses;      // ops on the device that touch it, from the next one on
  };

  // --- what a warm-up step would have told ---

  void pack(const Graph& step, std::optional<std::int64_t> chunk_elements) {
    Buckets buckets;
    buckets.follow(step);
    std::vector<std::int64_t> elements;
    for (const Bucket& bucket : buckets.first()) {
      const Tensor& parameter = step.tensor_of(bucket.parameter);
      elements.push_back(parameter.bytes / size_of(parameter.type));
      CHECK(element_bytes_ == 0 || element_bytes_ == size_of(parameter.type), "chunks are of one type", parameter.name);
      element_bytes_ = size_of(parameter.type);
    }
    packing_ = chunk_elements ? pack_chunks(elements, *chunk_elements) : pack_chunks(elements);
    chunks_.resize(static_cast<std::size_t>(packing_.count()));
  }

  using Moment = std::tuple<Phase, std::int32_t, std::int32_t>;  // layer and micro-batch
  static Moment moment(const Op& op) {
    const auto last = static_cast<std::int32_t>(kFirstStepMicroBatches) - 1;
    return {op.phase, op.layer, std::min(op.micro_batch, last)};
  }

  void note_non_model_bytes(const Graph& step, const std::vector<std::int32_t>& offloaded) {
    const auto by_op = non_model_bytes(step, offloaded);
    for (OpId id = step.era().first_op; id < step.op_count(); ++id) {
      std::int64_t& bytes = non_model_bytes_[moment(step.op(id))];
      bytes = std::max(bytes, by_op[static_cast<std::size_t>(id)]);
    }
  }

  // An evaluation keeps less than the training it stands in for.
  std::int64_t room_for_chunks(const Op& op) const {
    Op known = op;
    if (op.phase == Phase::Evaluate) known.phase = Phase::Forward, known.micro_batch = 0;
    const auto found = non_model_bytes_.find(moment(known));
    return room_ - (found == non_model_bytes_.end() ? 0 : found->second);
  }

  // What the first chunks' updates need on the device beyond parameters and gradients. A chunk takes its size, however
  // full it is. A parameter that its update reads stays beside its gradient.
  std::int64_t margin_bytes(const Graph& step, std::int64_t count) const {
    Buckets buckets;
    buckets.follow(step);
    std::int64_t per_element = 0;
    for (const Bucket& bucket : buckets.first()) {
      std::int64_t bytes = 0;
      for (ValueId read : step.op(bucket.optimizer).reads)
        if (const Role role = step.tensor_of(read).role; role == Role::OptimizerState || role == Role::Parameter)
          bytes += step.value(read).bytes;
      per_element = std::max(per_element, bytes * element_bytes_ / step.value(bucket.parameter).bytes);
    }
    return std::min<std::int64_t>(count, packing_.count()) * packing_.elements * per_element;
  }

  std::int64_t chunks_that_fit(const Graph& step, std::int64_t bytes) const {
    std::int64_t count = 0;
    while (count < packing_.count() && margin_bytes(step, count + 1) <= bytes) ++count;
    return count;
  }

  bool in_margin(std::int32_t layer) const {
    return layer >= 0 && packing_.of_layer[static_cast<std::size_t>(layer)] < margin_chunks_;
  }

  // --- where chunks are ---

  static bool is_model_data(const Graph& graph, ValueId value) {
    const Role role = graph.tensor_of(value).role;
    return role == Role::Parameter || role == Role::Gradient;
  }
  std::size_t chunk_of(const Graph& graph, ValueId value) const {
    const std::int32_t layer = graph.tensor_of(value).layer;
    CHECK(layer >= 0 && layer < std::ssize(packing_.of_layer), graph.value_name(value), "is in no chunk", layer);
    return static_cast<std::size_t>(packing_.of_layer[static_cast<std::size_t>(layer)]);
  }

  void follow(const View& view) {
    const Graph& graph = view.graph();
    seen_ = std::max(seen_, graph.era().first_op);
    if (seen_ == graph.op_count()) return;
    buckets_.follow(graph);
    std::erase_if(last_use_, [&](const auto& entry) { return view.issued(entry.second); });
    for (Chunk& chunk : chunks_) next_use(view, chunk);  // drops those that are past
    for (; seen_ < graph.op_count(); ++seen_) {
      const Op& op = graph.op(seen_);
      const bool update = op.phase == Phase::OptimizerStep;
      if (op.engine == Engine::Loader || (update && !in_margin(op.layer))) continue;
      const auto note = [&](ValueId value) {
        if (!is_model_data(graph, value)) return;
        last_use_[value] = seen_;
        auto& uses = chunks_[chunk_of(graph, value)].uses;
        if (uses.empty() || uses.back() != seen_) uses.push_back(seen_);
      };
      for (ValueId read : op.reads) note(read);
      for (const Write& write : op.writes) note(write.value);
    }
  }

  OpId next_use(const View& view, Chunk& chunk) const {
    while (!chunk.uses.empty() && view.issued(chunk.uses.front())) chunk.uses.pop_front();
    return chunk.uses.empty() ? std::numeric_limits<OpId>::max() : chunk.uses.front();
  }
  bool needed_again(const View& view, ValueId value) const {
    const auto last = last_use_.find(value);
    return last != last_use_.end() && !view.issued(last->second);
  }

  static void add(Chunk& chunk, ValueId value) {
    if (std::find(chunk.here.begin(), chunk.here.end(), value) == chunk.here.end()) chunk.here.push_back(value);
  }

  // A chunk takes its size; while gradients are added up, they have no place in their parameters' chunk.
  std::int64_t bytes_here(const View& view, Chunk& chunk) const {
    std::erase_if(chunk.here, [&](ValueId value) { return !view.valid(value, Tier::Device); });
    std::int64_t bytes = 0;
    for (ValueId value : chunk.here) bytes += view.graph().value(value).bytes;
    return chunk.here.empty() ? 0 : std::max(bytes, packing_.elements * element_bytes_);
  }

  // The chunk's parameters of the version that the op reads, as far as the device needs them again.
  std::vector<ValueId> missing_parameters(const View& view, OpId op) const {
    std::vector<ValueId> missing;
    for (ValueId read : view.graph().op(op).reads) {
      const Graph& graph = view.graph();
      if (graph.tensor_of(read).role != Role::Parameter) continue;
      const auto& buckets = buckets_.step(graph.op(op).step);
      const auto layer = static_cast<std::size_t>(graph.tensor_of(read).layer);
      CHECK(layer < buckets.size() && buckets.size() == packing_.of_layer.size(), layer, buckets.size());
      const bool old = buckets[layer].old_parameter == read;
      for (std::size_t l = 0; l < buckets.size(); ++l) {
        const ValueId value = old ? buckets[l].old_parameter : buckets[l].parameter;
        if (packing_.of_layer[l] == packing_.of_layer[layer] && needed_again(view, value) &&
            !view.valid(value, Tier::Device))
          missing.push_back(value);
      }
    }
    return missing;
  }

  // Makes room for what the op needs of chunks, by evicting whom the device needs again last.
  void make_room(const View& view, Decisions& decisions, OpId next, const std::vector<ValueId>& missing) {
    const Graph& graph = view.graph();
    const Op& op = graph.op(next);
    std::vector<bool> used(chunks_.size());
    std::int64_t bytes = 0;
    const auto use = [&](ValueId value) {
      if (is_model_data(graph, value)) used[chunk_of(graph, value)] = true;
    };
    for (ValueId read : op.reads) use(read);
    for (const Write& write : op.writes) {
      use(write.value);
      // The new gradient is beside its parameter until that has been read.
      if (graph.tensor_of(write.value).role == Role::Gradient && write.reuses == kNone)
        bytes += graph.value(write.value).bytes;
    }
    std::vector<std::int64_t> arriving(chunks_.size());
    for (ValueId value : missing) arriving[chunk_of(graph, value)] = packing_.elements * element_bytes_;
    for (std::size_t c = 0; c < chunks_.size(); ++c) bytes += std::max(bytes_here(view, chunks_[c]), arriving[c]);
    while (bytes > room_for_chunks(op)) {
      std::size_t victim = chunks_.size();
      for (std::size_t c = 0; c < chunks_.size(); ++c)
        if (!used[c] && !chunks_[c].here.empty() &&
            (victim == chunks_.size() || next_use(view, chunks_[c]) > next_use(view, chunks_[victim])))
          victim = c;
      if (victim == chunks_.size()) return;
      bytes -= bytes_here(view, chunks_[victim]);
      used[victim] = true;
      evict(view, decisions, chunks_[victim]);
    }
  }

  // A gradient goes to the host, which has the parameters already, but for those that the device has updated.
  static void evict(const View& view, Decisions& decisions, Chunk& chunk) {
    for (ValueId value : chunk.here)
      if (view.valid(value, Tier::HostPinned) || decisions.copy(value, Tier::HostPinned) == Reply::Issued)
        decisions.release(value, Tier::Device);
  }

  // --- forward and backward ---

  bool advance(const View& view, Decisions& decisions) {
    const auto program = view.compute_program();
    if (program.empty() || view.computing() >= kComputeAhead || !view.issuable(program.front())) return false;
    const OpId next = program.front();
    const auto missing = missing_parameters(view, next);
    if (!missing.empty() && !overlap_ && view.computing() > 0) return false;
    make_room(view, decisions, next, missing);
    if (!missing.empty() && !overlap_ && view.queued(Engine::D2H) > 0) return false;
    for (ValueId value : missing)
      if (decisions.copy(value, Tier::Device) == Reply::Issued) add(chunks_[chunk_of(view.graph(), value)], value);
    if (decisions.run(next) != Reply::Issued) return false;
    settle(view, decisions, next);
    activations_.move(view, decisions);
    return true;
  }

  // A parameter that only an update on the CPU reads again makes place for its gradient.
  void settle(const View& view, Decisions& decisions, OpId ran) {
    const Graph& graph = view.graph();
    const Op& op = graph.op(ran);
    for (ValueId read : op.reads)
      if (is_model_data(graph, read)) {
        add(chunks_[chunk_of(graph, read)], read);
        if (graph.tensor_of(read).role == Role::Parameter && !needed_again(view, read))
          decisions.release(read, Tier::Device);
      }
    for (const Write& write : op.writes)
      if (is_model_data(graph, write.value)) add(chunks_[chunk_of(graph, write.value)], write.value);
  }

  // --- Adam ---

  // From when the backward is issued, whose last gradient is the first bucket's, until all parameters are where they
  // belong.
  bool updates(const View& view) {
    if (updating_ == kNone && !view.ready_optimizer_ops().empty()) {
      const std::int32_t step = view.graph().op(view.ready_optimizer_ops().front()).step;
      CHECK(!buckets_.step(step).empty() && uploads_.empty(), "an update begins before the last has ended", step);
      if (view.issuable(buckets_.step(step).front().optimizer)) updating_ = step, updated_ = 0;
    }
    return updating_ != kNone;
  }

  bool update(const View& view, Decisions& decisions) {
    const auto& buckets = buckets_.step(updating_);
    bool any = uploads_.send(view, decisions, /*wait_for_room=*/false, /*staged=*/false);
    for (; updated_ < buckets.size(); ++updated_, any = true) {
      const Bucket& bucket = buckets[updated_];
      if (in_margin(bucket.index)) {
        if (decisions.run(bucket.optimizer, Engine::Compute) != Reply::Issued) return any;
        settle(view, decisions, bucket.optimizer);
      } else if (!may_update(view) || !update_on_cpu(view, decisions, bucket)) {
        return any;
      }
    }
    if (view.queued(Engine::CpuOptimizer) > 0 || !uploads_.empty() || copies(view)) return any;
    updating_ = kNone;
    for (const Bucket& bucket : buckets)
      if (view.valid(bucket.parameter, Tier::Device))
        add(chunks_[chunk_of(view.graph(), bucket.parameter)], bucket.parameter);
    return true;
  }

  static bool copies(const View& view) { return view.queued(Engine::H2D) > 0 || view.queued(Engine::D2H) > 0; }
  bool may_update(const View& view) const {
    if (overlap_) return view.queued(Engine::CpuOptimizer) < 2;
    return view.queued(Engine::CpuOptimizer) == 0 && uploads_.empty() && !copies(view);
  }

  // The new parameter goes where the gradient was, whose place is its own.
  bool update_on_cpu(const View& view, Decisions& decisions, const Bucket& bucket) {
    const bool was_on_device = view.valid(bucket.gradient, Tier::Device);
    if (decisions.copy(bucket.gradient, Tier::HostPinned) == Reply::Issued)
      decisions.release(bucket.gradient, Tier::Device);
    if (decisions.run(bucket.optimizer, Engine::CpuOptimizer) != Reply::Issued) return false;
    if (was_on_device) uploads_.add(bucket.parameter);
    return true;
  }

  bool overlap_;
  Activations activations_;
  EqualChunks packing_;
  std::int64_t element_bytes_ = 0;  // of a parameter, and of a gradient
  std::map<Moment, std::int64_t> non_model_bytes_;
  std::int64_t margin_chunks_ = 0;
  std::int64_t room_ = 0;  // for chunks and what is no model data

  BatchesAhead batches_;
  Buckets buckets_;
  std::vector<Chunk> chunks_;
  std::map<ValueId, OpId> last_use_;  // on the device
  OpId seen_ = 0;
  ParameterUploads uploads_;
  std::int32_t updating_ = kNone;  // step
  std::size_t updated_ = 0;        // of its buckets, issued
};

}  // namespace tandem

TANDEM_POLICY(patrickstar, PatrickStar,
              "PatrickStar: equal chunks on the device while it lasts, the last needed leaves", "overlap",
              "chunk_elements", "margin_chunks", "offload_blocks", "recompute_blocks")
