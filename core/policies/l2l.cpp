// L2L (Pudipeddi et al., 2020, arXiv 2002.05645): a layer at a time is on the device, and all micro-batches pass
// through it before the next: forward from the first layer to the last, backward from the last to the first. The rest
// of the model lives on the host, whose eager parameter server updates a layer as soon as its gradient, summed up on
// the device over the micro-batches, has arrived. While one layer computes, the parameters of the next come in
// (`prefetch`). What is kept of a forward is a layer's input, from which its backward recomputes the rest; where the
// inputs of all micro-batches do not fit on the device, they wait on the host (the paper's constant-memory variant).
//
// `optimizer: device` is what ZeRO-Offload compares with (Ren et al., ATC 2021, Table 3: 28 bytes a parameter cross the
// bus): a layer's states come to the device for its update, and return.
//
// The graph is micro-batch after micro-batch. Nothing in it depends on that order but the sums of gradients, which keep
// theirs within a layer, so the policy issues the same ops layer after layer. The last layer, whose forward saves more
// than its input, goes through forward and backward of each micro-batch in turn.
#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/gradients.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/shared_update.hpp"
#include "core/transforms/recompute/recompute.hpp"

namespace tandem {

class LayerToLayer final : public Policy {
 public:
  explicit LayerToLayer(const Scenario& scenario)
      : prefetch_(static_cast<std::int32_t>(int_option(scenario, "prefetch", 0, 1, 1))),
        on_device_(choice_option(scenario, "optimizer", {"cpu", "device"}) == "device"),
        stash_(choice_option(scenario, "stash", {"auto", "device", "host"})),
        recomputed_(int_option(scenario, "recompute_blocks", 0, kMost, kMost)),
        segment_(scenario.workload.checkpoint_every) {
    if (scenario.workload.partition != "none")
      throw ConfigError(
          "workload.partition: l2l takes all micro-batches through a layer at a time, each of which would gather its "
          "parameters; allowed: none");
    if (scenario.workload.devices > 1 && scenario.workload.parallel.integer_or("bucket", 0) > 0)
      throw ConfigError(
          "parallel.bucket: l2l waits for a layer's gradient before it goes on to the next layer; allowed: none, or "
          "another policy");
    if (scenario.parallel.pipeline > 1)
      throw ConfigError(
          "parallel.pipeline: l2l takes all micro-batches through a layer at a time, and a pipeline's stages have an "
          "order of their own; allowed: 1");
  }

  PolicyTraits traits() const override {
    std::vector<Binding> bindings;
    if (stash_ != "auto")
      bindings.push_back({.role = Role::Activation,
                          .lowest = stash_ == "device" ? Tier::Device : Tier::HostPinned,
                          .option = "stash: " + stash_});
    return {.rewrites = {recompute_blocks({.offload = 0, .recompute = recomputed_}, segment_)},
            .bindings = std::move(bindings)};
  }

  void decide(const View& view, Decisions& decisions) override {
    follow(view);
    bool progress = true;
    while (progress) {
      progress = false;
      if (on_device_) {
        progress |= update_on_device(view, decisions);
      } else {
        gradients_.move(view, decisions, buckets_, [](const Bucket&) { return false; });
        update_as_they_arrive(view, decisions, buckets_, [](const Bucket&) { return true; });
      }
      progress |= advance(view, decisions);
    }
  }

 private:
  static constexpr std::int64_t kMost = 100000;
  // Updates whose states are on the device: one comes in, one is updated or leaves.
  static constexpr std::ptrdiff_t kUnderWay = 2;

  // An op's turn: a visit to a layer is a run of ops with the same `visit`.
  struct Turn {
    OpId op = kNone;
    std::int32_t visit = 0;
  };

  // --- order ---

  void follow(const View& view) {
    const Graph& graph = view.graph();
    seen_ = std::max(seen_, graph.era().first_op);
    if (seen_ == graph.op_count()) return;
    buckets_.follow(graph);
    const bool first = turns_.empty() && visits_ == 0;
    std::erase_if(passed_, [&](const auto& entry) { return view.issued(entry.second.last); });
    while (seen_ < graph.op_count()) {
      const std::int32_t step = graph.op(seen_).step;
      std::vector<OpId> ops;
      for (; seen_ < graph.op_count() && graph.op(seen_).step == step; ++seen_)
        if (const Phase p = graph.op(seen_).phase; p != Phase::Load && p != Phase::Save && p != Phase::OptimizerStep)
          ops.push_back(seen_);
      note_forwards(graph, ops);
      add_turns(graph, ops);
    }
    if (first) on_host_ = stash_ == "host" || (stash_ == "auto" && stash_on_host(view));
  }

  void add_turns(const Graph& graph, const std::vector<OpId>& ops) {
    std::int32_t last = 0;  // layer
    for (OpId op : ops) last = std::max(last, graph.op(op).layer);
    std::vector<std::tuple<std::int32_t, std::int32_t, OpId>> order;  // visit of the step, micro-batch
    std::int32_t backward = kNone, next = 0;                          // the visit of the next one; of the next op
    for (auto id = ops.rbegin(); id != ops.rend(); ++id) {
      const Op& op = graph.op(*id);
      if (op.phase == Phase::Backward) backward = 2 * last - op.layer;
      std::int32_t visit = op.phase == Phase::Forward ? op.layer : 2 * last - op.layer;
      CHECK(op.phase != Phase::Recompute || backward != kNone, graph.op_name(*id), "is followed by no backward");
      if (op.phase == Phase::Recompute) visit = backward;
      if (op.phase == Phase::Evaluate) visit = 2 * last + 2 + op.layer;
      if (op.layer == kNone) visit = 2 * last + 1;
      if (op.phase == Phase::Gather) visit = next;  // what it makes is for the op after it
      next = visit;
      order.emplace_back(visit, op.micro_batch, *id);
    }
    std::sort(order.begin(), order.end());
    std::int32_t before = kNone;
    for (const auto& [visit, micro_batch, op] : order) {
      if (visit != before) ++visits_;
      before = visit;
      turns_.push_back({op, visits_});
    }
  }

  // --- layers ---

  // The layer that computes, and, with prefetch, the next.
  std::int32_t last_visit() const {
    CHECK(!running_.empty() || !turns_.empty(), "no layer computes, and none is left", visits_);
    return (running_.empty() ? turns_.front() : running_.front()).visit + prefetch_;
  }

  bool advance(const View& view, Decisions& decisions) {
    while (!running_.empty() && view.finished(running_.front().op)) running_.pop_front();
    if (turns_.empty()) return false;
    fetch_parameters(view, decisions);
    fetch_activations(view, decisions);
    const Turn next = turns_.front();
    if (next.visit > last_visit() || view.computing() >= kComputeAhead) return false;
    if (decisions.run(next.op) != Reply::Issued) return false;
    CHECK(running_.empty() || running_.back().visit <= next.visit, "a layer's turn comes before the last's",
          next.visit);
    turns_.pop_front();
    running_.push_back(next);
    stash(view, decisions, next.op);
    if (turns_.empty() || turns_.front().visit != next.visit) leave(view, decisions, next);
    return true;
  }

  void fetch_parameters(const View& view, Decisions& decisions) const {
    std::int32_t fetched = kNone;  // ops of a visit read the same
    for (const Turn& turn : turns_) {
      if (turn.visit > last_visit()) return;
      if (turn.visit == fetched) continue;
      fetched = turn.visit;
      for (ValueId read : view.graph().op(turn.op).reads) {
        if (view.graph().tensor_of(read).role != Role::Parameter || view.valid(read, Tier::Device)) continue;
        // A copy that waits for an update would hold up the lane.
        if (!view.arrived(read, Tier::HostPinned) || decisions.copy(read, Tier::Device) != Reply::Issued) return;
      }
    }
  }

  // A layer is passed: its parameters are dropped, as the host has them, but for those that the next one reads, too.
  void leave(const View& view, Decisions& decisions, const Turn& passed) const {
    for (ValueId read : view.graph().op(passed.op).reads)
      if (view.graph().tensor_of(read).role == Role::Parameter &&
          !read_until(view.graph(), read, passed.visit + prefetch_))
        decisions.release(read, Tier::Device);
  }

  bool read_until(const Graph& graph, ValueId value, std::int32_t visit) const {
    return std::any_of(turns_.begin(), turns_.end(),
                       [&](const Turn& turn) { return turn.visit <= visit && reads(graph, turn.op, value); });
  }

  static bool reads(const Graph& graph, OpId op, ValueId value) {
    const auto& all = graph.op(op).reads;
    return std::find(all.begin(), all.end(), value) != all.end();
  }

  // --- what is kept for the backward ---

  std::size_t soon() const { return std::min(turns_.size(), static_cast<std::size_t>(kComputeAhead)); }

  // What comes back, batches, and what passes between layers and had to leave.
  void fetch_activations(const View& view, Decisions& decisions) const {
    for (std::size_t i = 0; i < soon(); ++i)
      for (ValueId read : view.graph().op(turns_[i].op).reads) {
        const Role role = view.graph().tensor_of(read).role;
        if ((role != Role::Activation && role != Role::Batch) || view.valid(read, Tier::Device)) continue;
        if (view.valid(read, Tier::HostPinned) && decisions.copy(read, Tier::Device) != Reply::Issued) return;
      }
  }

  // What backwards will read leaves with the last forward that does, unless it is wanted again at once.
  void stash(const View& view, Decisions& decisions, OpId ran) const {
    const Graph& graph = view.graph();
    if (!on_host_ || graph.op(ran).phase != Phase::Forward) return;
    const auto send = [&](ValueId value) {
      const auto passed = passed_.find(value);
      if (passed == passed_.end() || passed->second.last_forward != ran || !passed->second.for_backward) return;
      for (std::size_t i = 0; i < soon(); ++i)
        if (reads(graph, turns_[i].op, value)) return;
      if (decisions.copy(value, Tier::HostPinned) == Reply::Issued) decisions.release(value, Tier::Device);
    };
    for (ValueId read : graph.op(ran).reads) send(read);
    for (const Write& write : graph.op(ran).writes) send(write.value);
  }

  void note_forwards(const Graph& graph, const std::vector<OpId>& ops) {
    for (OpId id : ops) {
      const Op& op = graph.op(id);
      const bool forward = op.phase == Phase::Forward;
      for (ValueId read : op.reads)
        if (graph.tensor_of(read).role == Role::Activation) {
          Passed& passed = passed_[read];
          if (forward) passed.last_forward = id;
          passed.for_backward = !forward;
          passed.last = id;
        }
      for (const Write& write : op.writes)
        if (forward) passed_[write.value] = {id, false, id};
    }
  }

  // True unless the device has room for all that forwards leave to backwards, beside two layers, their widest op, and
  // what passes from one to the other.
  bool stash_on_host(const View& view) const {
    const Graph& graph = view.graph();
    std::int64_t kept = 0, layer = 0, passing = 0, widest = 0;
    for (ValueId value = graph.era().first_value; value < graph.value_count(); ++value) {
      const Op& producer = graph.op(graph.value(value).producer);
      if (!graph.in_first_step(producer) || graph.tensor_of(value).role != Role::Activation) continue;
      const auto passed = passed_.find(value);
      if (passed != passed_.end() && passed->second.for_backward && producer.phase == Phase::Forward)
        kept += graph.value(value).bytes;
      passing = std::max(passing, graph.value(value).bytes);
    }
    for (const Turn& turn : turns_)
      if (graph.in_first_step(graph.op(turn.op))) widest = std::max(widest, view.missing_bytes(turn.op));
    for (const Bucket& bucket : buckets_.first()) {
      std::int64_t bytes = graph.value(bucket.parameter).bytes + graph.value(bucket.gradient).bytes;
      for (ValueId read : graph.op(bucket.optimizer).reads)
        if (on_device_) bytes += graph.value(read).bytes;
      layer = std::max(layer, bytes);
    }
    const std::int64_t micro_batches = view.scenario().workload.micro_batches;
    return kept + 2 * (layer + widest + micro_batches * passing) > view.capacity_bytes(Tier::Device);
  }

  // --- updates on the device ---

  // Of the layers whose gradients are final, one's states come in while another's go home.
  bool update_on_device(const View& view, Decisions& decisions) {
    std::erase_if(under_way_, [&](const SharedUpdate& update) {
      return update.returned() && update.all_settled(view, update.new_states, Tier::HostPinned);
    });
    bool any = false;
    for (std::size_t i = view.ready_optimizer_ops().size(); i-- > 0 && std::ssize(under_way_) < kUnderWay;) {
      const OpId op = view.ready_optimizer_ops()[i];
      const auto known = [&](const SharedUpdate& update) { return update.bucket.optimizer == op; };
      if (std::any_of(under_way_.begin(), under_way_.end(), known)) continue;
      SharedUpdate update(view.graph(), buckets_.of(view.graph(), op), /*device_share=*/1, /*resident=*/false);
      if (!update.stream_in(view, decisions) && (!under_way_.empty() || !running_.empty())) break;  // room comes later
      under_way_.push_back(std::move(update));
      any = true;
    }
    for (SharedUpdate& update : under_way_) {
      if (update.ran || !update.all_settled(view, update.old_states, Tier::Device)) continue;
      CHECK(decisions.run(update.bucket.optimizer, Engine::Compute) == Reply::Issued,
            view.graph().op_name(update.bucket.optimizer), "waits for an op");
      for (update.ran = true; !update.returned();) update.return_piece(view, decisions, /*with_parameter=*/true);
      if (turns_.empty() || !read_until(view.graph(), update.bucket.parameter, last_visit()))
        decisions.release(update.bucket.parameter, Tier::Device);
      any = true;
    }
    return any;
  }

  std::int32_t prefetch_;
  bool on_device_;
  std::string stash_;
  std::int64_t recomputed_;
  std::int64_t segment_;  // of what recomputes
  bool on_host_ = false;  // what is kept for the backward

  OpId seen_ = 0;
  std::int32_t visits_ = 0;
  std::deque<Turn> turns_;    // not issued
  std::deque<Turn> running_;  // issued to the compute lane, not seen to finish
  // What becomes of an activation of the steps in hand.
  struct Passed {
    OpId last_forward = kNone;  // that reads or writes it
    bool for_backward = false;
    OpId last = kNone;  // op that is known to use it
  };
  std::map<ValueId, Passed> passed_;
  Buckets buckets_;
  LeavingGradients gradients_;
  std::vector<SharedUpdate> under_way_;
};

}  // namespace tandem

TANDEM_POLICY(l2l, LayerToLayer, "L2L: a layer at a time on the device, all micro-batches through it", "prefetch",
              "optimizer", "stash", "recompute_blocks")
