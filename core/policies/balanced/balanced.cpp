// Optimizer states live on the host, but for those of the first buckets that fit on the device beside everything else
// (resident_buckets); every other bucket's update is shared by both processors: the CPU updates one part
// in place, the device the other, whose states are streamed to it and back, over both directions of the bus at once. An
// update starts as soon as its gradient is there, among those that are the one whose parameters the next forward needs
// first, and parameters return in that order, a piece of the CPU's part at a time. Each part moves as soon as the event
// that makes it ready has been seen, so that no lane waits for another with work behind it.
//
// Each update is cut so that both sides would end it at the same time, by the estimates, after what they still have to
// do; and as estimates of processors on one memory bus are no constants, whoever has nothing to do while the other
// holds up the next update gets more from then on. The bits are the same however an update is cut. While there is
// nothing to update, the states of the buckets whose gradients come next are already brought to the device; it gets
// more of those, since the CPU has to wait for their gradients. States on their way home let gradients pass, which the
// CPU waits for.
//
// Where what the blocks save does not fit beside that, the first of them recompute it, or send it to the host in
// between (offload_blocks, recompute_blocks; chosen unless given, or unless the scenario recomputes). Where room is so
// short that computing evicts activations, they return ahead of their backward, so that it gets ahead of the updates:
// those that wait go on during the next forward, whose first layers they do not hold up.
#include <algorithm>
#include <vector>

#include "core/base/check.hpp"
#include "core/policies/balanced/update_backlog.hpp"
#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/shared_update.hpp"
#include "core/policies/common/update_costs.hpp"

namespace tandem {

class Balanced final : public Policy {
 public:
  explicit Balanced(const Scenario& scenario)
      : device_percent_(int_option(scenario, "device_percent", 0, 100, kAuto)),
        resident_(int_option(scenario, "resident_buckets", 0, 100000, kAuto)),
        activations_(scenario, &memory_use()) {
    // The first ones: their gradients come last, and the next forward needs their parameters first.
    if (resident_ == kAuto) resident_ = device_percent_ == 0 ? 0 : activations_.resident();
  }

  PolicyTraits traits() const override {
    return {.rewrites = activations_.rewrites(), .bindings = activations_.bindings()};
  }

  Tier home(const View& view, TensorId tensor) override {
    const Tensor& t = view.graph().tensor(tensor);
    const bool of_update = t.role == Role::OptimizerState || t.role == Role::Parameter;
    return of_update && t.layer < resident_ ? Tier::Device : parameters_.home(view, tensor);
  }

  void decide(const View& view, Decisions& decisions) override {
    buckets_.follow(view.graph());
    if (forward_ns_ < 0) forward_ns_ = forward_ns(view);
    batches_.fetch(view, decisions);
    bool progress = true;
    while (progress) {
      progress = false;
      for (SharedUpdate& update : updates_) progress |= advance(view, decisions, update);
      std::erase_if(updates_, [](const SharedUpdate& update) { return update.returned() && update.uploaded(); });
      progress |= start_next(view, decisions) || stream_ahead(view, decisions);
      progress |= feed(view, decisions);
    }
  }

 private:
  static constexpr std::int64_t kAuto = -1;
  static constexpr Tier kTiers[] = {Tier::Device, Tier::HostPinned, Tier::Disk};
  // Updates under way: one that streams in, one that streams out, and the next, whose first bytes wait for room.
  static constexpr std::int64_t kUnderWay = 3;
  std::int64_t most_under_way() const { return activations_.fit() ? kUnderWay : kUnderWay - 1; }
  // Commands queued on the compute lane: the device's part of an update goes behind them.
  static constexpr int kAhead = 2;
  // And on the CPU's: the next update is chosen late.
  static constexpr int kCpuAhead = 2;
  // And on the way from the device: behind fewer, states return.
  static constexpr int kReturnsAhead = 2;
  // Ops ahead of which activations return that had to leave.
  static constexpr std::size_t kReturnAhead = 6;
  // Updates that wait may take so many forwards: they are not the last ones alone, so that the forward waits for them.
  static constexpr double kWaitingForwards = 2;
  // What the device's share changes by when one side has waited for the other.
  static constexpr double kShareStep = 0.01;

  static const MemoryUse& memory_use() {
    static const MemoryUse kUse{kUnderWay, &shared_updates_ns};
    return kUse;
  }

  double device_share(const View& view, const Bucket& bucket) const {
    if (device_percent_ != kAuto) return static_cast<double>(device_percent_) / 100;
    const UpdateBacklog backlog = update_backlog(view, updates_, bucket);
    const UpdateCosts costs = update_costs_together(view.graph(), view.estimate(), view.graph().op(bucket.optimizer));
    return std::clamp(costs.device_share(backlog.cpu_ns - backlog.bus_ns) + correction_, 0.0, 1.0);
  }

  SharedUpdate plan(const View& view, const Bucket& bucket) const {
    const bool resident = bucket.index < resident_;
    return SharedUpdate(view.graph(), bucket, resident ? 1 : device_share(view, bucket), resident);
  }

  bool under_way(OpId optimizer) const {
    return std::any_of(updates_.begin(), updates_.end(),
                       [&](const SharedUpdate& update) { return update.bucket.optimizer == optimizer; });
  }
  // Of those that could go on without a new gradient, how many `hold`.
  template <typename F>
  std::int64_t launched(F&& holds) const {
    return std::count_if(updates_.begin(), updates_.end(),
                         [&](const SharedUpdate& update) { return update.launched && holds(update); });
  }
  std::int64_t launched() const {
    return launched([](const SharedUpdate&) { return true; });
  }
  // Its gradient is final and somewhere: on the disk, where the host was full.
  static bool can_launch(const View& view, const Bucket& bucket) {
    return view.issuable(bucket.optimizer) && std::any_of(std::begin(kTiers), std::end(kTiers), [&](Tier tier) {
             return view.arrived(bucket.gradient, tier);
           });
  }

  // Starts the update of the bucket whose parameters are needed first, among those whose gradients are there.
  bool start_next(const View& view, Decisions& decisions) {
    for (OpId op : view.ready_optimizer_ops()) {
      if (under_way(op)) continue;
      const Bucket& bucket = buckets_.of(view.graph(), op);
      if (!can_launch(view, bucket)) continue;
      if (bucket.index < resident_) return start(view, decisions, plan(view, bucket));  // the device's alone
      if (cpu_has_work()) {
        held_by_cpu_ = true;
        return false;
      }
      if (launched() >= most_under_way()) {
        held_by_device_ = true;
        return false;
      }
      adapt_share(view);
      return start(view, decisions, plan(view, bucket));
    }
    return false;
  }

  // One update in its hands, and the next one.
  bool cpu_has_work() const {
    return launched([](const SharedUpdate& update) { return !update.uploaded(); }) >= kCpuAhead;
  }

  // The CPU has come to the last update in hand. The device should then be at that one, too: neither done with it nor
  // still at one before, nor should the bus keep the CPU waiting for its gradient.
  void adapt_share(const View& view) {
    const std::int64_t at_device = launched([](const SharedUpdate& u) { return !u.ran; });
    const std::int64_t cpu_waits = launched([&](const SharedUpdate& u) {
      return !u.uploaded() && !u.settled(view, u.on_cpu, u.bucket.gradient, Tier::HostPinned);
    });
    if (held_by_device_ || (held_by_cpu_ && (at_device > 1 || cpu_waits > 0)))
      correction_ -= kShareStep;
    else if (held_by_cpu_ && at_device == 0)
      correction_ += kShareStep;
    held_by_cpu_ = held_by_device_ = false;
  }

  bool start(const View& view, Decisions& decisions, SharedUpdate update) {
    if (!update.stream_in(view, decisions)) {
      if (launched() > 0 || view.computing() > 0) return false;  // there will be room later
      update.on_device.bytes = 0;
      update.on_cpu = {0, update.lead_bytes};
    }
    CHECK(!under_way(update.bucket.optimizer), "an update begins once", view.graph().op_name(update.bucket.optimizer));
    launch(view, decisions, update);
    updates_.push_back(std::move(update));
    return true;
  }

  static void launch(const View& view, Decisions& decisions, SharedUpdate& update) {
    CHECK(!update.launched && !update.ran, "an update is launched once", view.graph().op_name(update.bucket.optimizer));
    CHECK(update.on_device.bytes + update.on_cpu.bytes == update.lead_bytes, update.on_device.bytes,
          update.on_cpu.bytes);
    update.launched = true;
    update.copy(view, decisions, update.on_cpu, update.bucket.gradient, Tier::HostPinned);
    // Most of it is there already: what the CPU had of the last update.
    if (update.bucket.reads_parameter)
      update.copy(view, decisions, update.on_cpu, update.bucket.old_parameter, Tier::HostPinned);
    update.ran = update.on_device.bytes == 0;
  }

  // With no update to go on with but to send home, brings the states that the next one needs. What an earlier update
  // still has to bring to the device is never behind them.
  bool stream_ahead(const View& view, Decisions& decisions) {
    const auto unfinished = [](const SharedUpdate& update) { return !update.ran || !update.uploaded(); };
    if (!activations_.fit() || launched(unfinished) > 0 || std::ssize(updates_) >= kUnderWay) return false;
    if (view.compute_program().empty()) return false;
    const std::int32_t step = view.graph().op(view.compute_program().front()).step;
    const Bucket* next = step == kNone ? nullptr : next_bucket(view, step);
    if (next == nullptr) return false;
    SharedUpdate update = plan(view, *next);
    if (update.resident || update.on_device.bytes == 0) return false;
    if (!update.stream_in(view, decisions)) return false;
    updates_.push_back(std::move(update));
    return true;
  }

  // The bucket of the step whose gradient comes first: the last in forward order, unless all wait for their norm. None
  // while one of the step before is not updated, or if the next one's states are not at rest.
  const Bucket* next_bucket(const View& view, std::int32_t step) const {
    const auto all_issued = [&](const std::vector<Bucket>& buckets) {
      return std::all_of(buckets.begin(), buckets.end(), [&](const Bucket& b) { return view.issued(b.optimizer); });
    };
    if (step > 0 && !all_issued(buckets_.step(step - 1))) return nullptr;
    const auto& buckets = buckets_.step(step);
    const auto waits = [&](const Bucket& b) { return !view.issued(b.optimizer) && !under_way(b.optimizer); };
    const bool in_order = !buckets.empty() && buckets.front().gradient_norm != kNone;
    const Bucket* next = nullptr;
    for (const Bucket& bucket : buckets)
      if (waits(bucket) && (next == nullptr || !in_order)) next = &bucket;
    if (next == nullptr) return nullptr;
    const Op& op = view.graph().op(next->optimizer);
    const bool at_rest = std::all_of(op.reads.begin(), op.reads.end(), [&](ValueId read) {
      return view.graph().tensor_of(read).role != Role::OptimizerState || view.arrived(read, Tier::HostPinned);
    });
    return at_rest ? next : nullptr;
  }

  // True if a part of the update went a step further.
  bool advance(const View& view, Decisions& decisions, SharedUpdate& update) {
    bool moved = false;
    if (!update.launched) {
      if (!can_launch(view, update.bucket)) return false;
      launch(view, decisions, update);
      moved = true;
    }
    return advance_on_device(view, decisions, update) | advance_on_cpu(view, decisions, update) | moved;
  }

  bool advance_on_device(const View& view, Decisions& decisions, SharedUpdate& update) {
    CHECK(update.launched, "runs before its gradient is there:", view.graph().op_name(update.bucket.optimizer));
    bool moved = false;
    if (!update.ran && update.all_settled(view, update.old_states, Tier::Device)) {
      const ByteRange part = update.on_device;
      CHECK(decisions.run_part(update.bucket.optimizer, part.first, part.bytes, Engine::Compute) == Reply::Issued,
            view.graph().op_name(update.bucket.optimizer), "waits for an op");
      update.ran = moved = true;
    }
    if (!update.ran) return moved;
    if (update.resident) update.returned_bytes = update.on_device.bytes;
    if (update.returned() || !update.all_settled(view, update.new_states, Tier::Device)) return moved;
    // What is issued next may take their room: where that is short, all go at once.
    while (!update.returned() && (view.queued(Engine::D2H) < kReturnsAhead || !activations_.fit())) {
      update.return_piece(view, decisions, /*with_parameter=*/!parameters_.fit() ||
                                               view.graph().tensor_of(update.bucket.parameter).on_host);
      moved = true;
    }
    return moved;
  }

  bool advance_on_cpu(const View& view, Decisions& decisions, SharedUpdate& update) {
    bool moved = false;
    while (update.updated_bytes < update.on_cpu.bytes && view.queued(Engine::CpuOptimizer) < kCpuAhead) {
      const ByteRange piece = update.piece(update.updated_bytes);
      CHECK(
          decisions.run_part(update.bucket.optimizer, piece.first, piece.bytes, Engine::CpuOptimizer) == Reply::Issued,
          view.graph().op_name(update.bucket.optimizer), "waits for an op");
      update.updated_bytes += piece.bytes;
      moved = true;
    }
    while (update.uploaded_bytes < update.updated_bytes && upload(view, decisions, update)) moved = true;
    CHECK(update.uploaded_bytes <= update.updated_bytes && update.updated_bytes <= update.on_cpu.bytes,
          update.uploaded_bytes, update.updated_bytes, update.on_cpu.bytes);
    return moved;
  }

  // Brings a piece's parameters to the device, if they are updated and there is room.
  bool upload(const View& view, Decisions& decisions, SharedUpdate& update) const {
    const ByteRange piece = update.piece(update.uploaded_bytes);
    const ValueId parameter = update.bucket.parameter;
    if (!update.settled(view, piece, parameter, Tier::HostPinned)) return false;
    const bool to_device = parameters_.fit() && !view.graph().tensor_of(parameter).on_host;
    if (to_device && update.copy(view, decisions, piece, parameter, Tier::Device) != Reply::Issued) return false;
    update.uploaded_bytes += piece.bytes;
    // The next update of the part reads it, unless a master copy is all that updates need.
    if (update.uploaded() && to_device && !update.bucket.reads_parameter)
      decisions.release(parameter, Tier::HostPinned);
    return true;
  }

  bool feed(const View& view, Decisions& decisions) {
    bool fed = false;
    if (!activations_.fit()) bring_back(view, decisions);
    if (!parameters_.fit()) prefetch_parameters(view, decisions, kAhead);
    while (view.computing() < kAhead && !view.compute_program().empty()) {
      const OpId next = view.compute_program().front();
      for (ValueId read : view.graph().op(next).reads)
        if (view.graph().tensor_of(read).role == Role::Parameter && !available(view, read)) return fed;
      if (decisions.run(next) != Reply::Issued) return fed;
      activations_.move(view, decisions);
      fed = true;
    }
    return fed;
  }

  static std::int64_t forward_ns(const View& view) {
    std::int64_t ns = 0;
    for (OpId id = view.graph().era().first_op; id < view.graph().op_count(); ++id)
      if (const Op& op = view.graph().op(id);
          op.phase == Phase::Forward && view.graph().in_first_step(op) && op.micro_batch == 0)
        ns += view.estimate().run_ns(view.graph(), op.work, Engine::Compute);
    return ns;
  }

  // Gradients wait, the updates of which take longer than a forward: if the backward ran further ahead, no update could
  // go on for longer during the next forward, and more gradients would have to leave and return.
  bool enough_wait(const View& view) {
    double left_ns = kWaitingForwards * static_cast<double>(forward_ns_);
    for (OpId op : view.ready_optimizer_ops()) {
      if (under_way(op)) continue;
      const UpdateCosts costs = update_costs_together(view.graph(), view.estimate(), view.graph().op(op));
      if ((left_ns -= (1 - costs.device_share()) * costs.cpu_ns) < 0) return true;
    }
    return false;
  }

  // Activations that had to leave return before the ops that read them are issued: behind what is queued then, they
  // would hold up computing.
  void bring_back(const View& view, Decisions& decisions) {
    const auto program = view.compute_program();
    for (OpId op : program.first(std::min<std::size_t>(kReturnAhead, program.size())))
      for (ValueId read : view.graph().op(op).reads)
        if (view.graph().tensor_of(read).role == Role::Activation && !view.valid(read, Tier::Device) &&
            view.arrived(read, Tier::HostPinned) &&
            (enough_wait(view) || decisions.copy(read, Tier::Device) != Reply::Issued))
          return;
  }

  // A parameter that is on its way would stop the compute lane, and with it the device's parts of updates.
  bool available(const View& view, ValueId parameter) const {
    if (view.arrived(parameter, Tier::Device)) return true;
    // A rank's part may be at home on the host, though whole parameters fit on the device.
    const Tensor& tensor = view.graph().tensor_of(parameter);
    const bool comes_at_need = !parameters_.fit() || tensor.whole != kNone || tensor.on_host;
    return comes_at_need && (view.arrived(parameter, Tier::HostPinned) || view.valid(parameter, Tier::Disk));
  }

  std::int64_t device_percent_, resident_;
  std::int64_t forward_ns_ = -1;                       // of a micro-batch, estimated; below 0: not yet
  double correction_ = 0;                              // of the device's share
  bool held_by_cpu_ = false, held_by_device_ = false;  // what the next update has waited for
  BatchesAhead batches_;
  Activations activations_;
  DeviceParameters parameters_;
  Buckets buckets_;
  std::vector<SharedUpdate> updates_;
};

}  // namespace tandem

TANDEM_POLICY(balanced, Balanced, "Each update shared by the CPU and the device, states streamed over the bus",
              "device_percent", "resident_buckets", "offload_blocks", "recompute_blocks")
