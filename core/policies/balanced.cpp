// Optimizer states live on the host, but for those of the first buckets that fit on the device beside everything else
// (resident_buckets); every other bucket's update is shared by both processors: the CPU updates one part
// in place, the device the other, whose states are streamed to it and back, over both directions of the bus at once. An
// update starts as soon as its gradient is there, among those that are the one whose parameters the next forward needs
// first, and parameters return in that order, a piece of the CPU's part at a time. Each part moves as soon as the event
// that makes it ready has been seen, so that no lane waits for another with work behind it.
//
// The shares take equal times by the estimates, and from then on by what happens: whoever has nothing to do while the
// other holds up the next update gets more of it. The processors' rates on one memory bus are no constants, and the
// bits are the same however an update is cut. While there is nothing to update, the states of the buckets whose
// gradients come next are already brought to the device.
//
// Where what the blocks save does not fit beside that, the first of them recompute it, or send it to the host in
// between (offload_blocks, recompute_blocks; chosen unless given, or unless the scenario recomputes).
#include <algorithm>
#include <vector>

#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"

namespace tandem {

class Balanced final : public Policy {
 public:
  explicit Balanced(const Scenario& scenario)
      : device_percent_(int_option(scenario, "device_percent", 0, 100, kAuto)),
        resident_(int_option(scenario, "resident_buckets", 0, 100000, kAuto)),
        activations_(scenario, &memory_use()) {}

  PolicyTraits traits() const override { return {.graph = {.activations = activations_.choice()}}; }

  Tier home(const View& view, TensorId tensor) override {
    if (resident_ == kAuto) resident_ = buckets_that_fit(view);
    const Tensor& t = view.graph().tensor(tensor);
    const bool of_update = t.role == Role::OptimizerState || t.role == Role::Parameter;
    return of_update && t.layer < resident_ ? Tier::Device : parameters_.home(view, tensor);
  }

  void decide(const View& view, Decisions& decisions) override {
    buckets_.follow(view.graph());
    bool progress = true;
    while (progress) {
      progress = false;
      for (Update& update : updates_) progress |= advance(view, decisions, update);
      std::erase_if(updates_, [](const Update& update) { return update.returned && update.uploaded(); });
      progress |= start_next(view, decisions) || stream_ahead(view, decisions);
      progress |= feed(view, decisions);
    }
  }

 private:
  static constexpr std::int64_t kAuto = -1;
  // Whole pages, so that a part can also rest on a disk.
  static constexpr std::int64_t kCutBytes = 4096;
  // Updates under way: one that streams in, one that streams out, and the next, whose first bytes wait for room.
  static constexpr std::int64_t kUnderWay = 3;
  // Commands queued on the compute lane: the device's part of an update goes behind them.
  static constexpr int kAhead = 2;
  // And on the CPU's: the next update is chosen late.
  static constexpr int kCpuAhead = 2;
  // Of a bucket's update on the CPU, so that its first parameters return while the others are updated; but not so
  // small that waking the threads would count.
  static constexpr std::int64_t kPieces = 4, kLeastPieceBytes = 256 << 10;
  // What the device's share changes by when one side has waited for the other.
  static constexpr double kShareStep = 0.01;

  struct Update {
    Bucket bucket;
    ByteRange on_device, on_cpu;  // of the op's first write
    std::int64_t lead_bytes = 0;
    std::vector<ValueId> old_states, new_states;
    bool resident = false;            // states stay on the device
    bool launched = false;            // its gradient is there; before that, states may be under way
    bool ran = false;                 // the device's part is issued
    bool returned = false;            // and its states are on their way home
    std::int64_t updated_bytes = 0;   // of the CPU's part, issued
    std::int64_t uploaded_bytes = 0;  // and of those, the parameters that are on their way to the device

    bool uploaded() const { return uploaded_bytes == on_cpu.bytes; }
    ByteRange piece(std::int64_t done) const {
      const std::int64_t bytes =
          std::max((on_cpu.bytes + kPieces - 1) / kPieces / kCutBytes * kCutBytes, kLeastPieceBytes);
      return {on_cpu.first + done, std::min(bytes, on_cpu.bytes - done)};
    }
  };

  static ByteRange range(const View& view, const Update& update, ByteRange lead, ValueId value) {
    return operand_range(lead, update.lead_bytes, view.graph().value(value).bytes);
  }
  // True if the part is there, or is not on its way: then something that needed the room has moved it out.
  static bool settled(const View& view, const Update& update, ByteRange lead, ValueId value, Tier tier) {
    const ByteRange part = range(view, update, lead, value);
    return view.arrived_part(value, part.first, part.bytes, tier) ||
           !view.valid_part(value, part.first, part.bytes, tier);
  }
  static Reply copy(const View& view, Decisions& decisions, const Update& update, ByteRange lead, ValueId value,
                    Tier to) {
    const ByteRange part = range(view, update, lead, value);
    return part.bytes > 0 ? decisions.copy_part(value, part.first, part.bytes, to) : Reply::Issued;
  }

  // One bucket's update.
  struct Costs {
    std::int64_t bytes = 0;  // of its states and parameters
    double stream_ns = 0, upload_ns = 0, cpu_ns = 0, dram_bytes_streamed = 0, dram_bytes_on_cpu = 0;
    // The bus and the CPU take equally long: the states of the device's share come and go, and the parameters of the
    // CPU's go up.
    double device_share() const {
      const double left_ns = std::max(cpu_ns - upload_ns, 0.0);
      return left_ns > 0 ? left_ns / (left_ns + stream_ns) : 0;
    }
  };
  static Costs costs_of(const Graph& graph, const CostModel& estimate, const Op& optimizer) {
    std::int64_t states = 0, parameter = 0;
    for (const Write& write : optimizer.writes)
      (graph.tensor_of(write.value).role == Role::OptimizerState ? states : parameter) +=
          graph.value(write.value).bytes;
    const std::int64_t on_cpu = CostModel::memory_bytes(graph.work(optimizer.work));
    return {states + parameter,
            static_cast<double>(estimate.copy_ns(Engine::H2D, states)),
            static_cast<double>(estimate.copy_ns(Engine::H2D, parameter)),
            static_cast<double>(estimate.run_ns(graph, optimizer.work, Engine::CpuOptimizer)),
            static_cast<double>(2 * states),
            static_cast<double>(on_cpu + 2 * parameter)};
  }

  // Calls `each(costs)` for the buckets of the first step, in forward order.
  template <typename F>
  static void for_buckets(const Graph& graph, const CostModel& estimate, F&& each) {
    for (OpId id = 0; id < graph.op_count(); ++id)
      if (const Op& op = graph.op(id); op.phase == Phase::OptimizerStep && op.step == 0)
        each(costs_of(graph, estimate, op));
  }

  // Those that do not fit in the spare bytes take the CPU's time, or that of DRAM, which both sides share.
  static std::int64_t updates_ns(const Graph& step, const CostModel& estimate, std::int64_t spare_bytes) {
    constexpr double kNsPerS = 1e9;
    double time = 0, dram_bytes = 0;
    for_buckets(step, estimate, [&](const Costs& costs) {
      if ((spare_bytes -= costs.bytes) >= 0) return;
      const double share = costs.device_share();
      time += (1 - share) * costs.cpu_ns;
      dram_bytes += share * costs.dram_bytes_streamed + (1 - share) * costs.dram_bytes_on_cpu;
    });
    const double rate = estimate.profile().tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s;
    return static_cast<std::int64_t>(rate > 0 ? std::max(time, dram_bytes / rate * kNsPerS) : time);
  }
  static const MemoryUse& memory_use() {
    static const MemoryUse kUse{kUnderWay, &updates_ns};
    return kUse;
  }

  // The first ones: their gradients come last, and the next forward needs their parameters first.
  std::int64_t buckets_that_fit(const View& view) const {
    std::int64_t left = activations_.spare_bytes(), count = 0;
    for_buckets(view.graph(), view.estimate(), [&](const Costs& costs) { count += (left -= costs.bytes) >= 0; });
    return count;
  }

  double device_share(const View& view, const Op& optimizer) const {
    if (device_percent_ != kAuto) return static_cast<double>(device_percent_) / 100;
    return std::clamp(costs_of(view.graph(), view.estimate(), optimizer).device_share() + correction_, 0.0, 1.0);
  }

  Update plan(const View& view, const Bucket& bucket) const {
    const Op& op = view.graph().op(bucket.optimizer);
    Update update;
    update.bucket = bucket;
    update.lead_bytes = view.graph().value(op.writes.front().value).bytes;
    for (ValueId read : op.reads)
      if (view.graph().tensor_of(read).role == Role::OptimizerState) update.old_states.push_back(read);
    for (const Write& write : op.writes)
      if (view.graph().tensor_of(write.value).role == Role::OptimizerState) update.new_states.push_back(write.value);
    update.resident = bucket.index < resident_;
    const double share = update.resident ? 1 : device_share(view, op);
    update.on_device.bytes =
        share >= 1 ? update.lead_bytes
                   : static_cast<std::int64_t>(share * static_cast<double>(update.lead_bytes)) / kCutBytes * kCutBytes;
    update.on_cpu = {update.on_device.bytes, update.lead_bytes - update.on_device.bytes};
    return update;
  }

  bool under_way(OpId optimizer) const {
    return std::any_of(updates_.begin(), updates_.end(),
                       [&](const Update& update) { return update.bucket.optimizer == optimizer; });
  }
  bool all_updates(bool (*holds)(const Update&)) const { return std::all_of(updates_.begin(), updates_.end(), holds); }
  // None that could go on without a new gradient.
  bool none_launched() const {
    return all_updates([](const Update& update) { return !update.launched; });
  }
  const Bucket& bucket_of(const View& view, OpId optimizer) const {
    const auto& buckets = buckets_.step(view.graph().op(optimizer).step);
    return *std::find_if(buckets.begin(), buckets.end(), [&](const Bucket& b) { return b.optimizer == optimizer; });
  }
  // Its gradient is final and somewhere.
  static bool can_launch(const View& view, const Bucket& bucket) {
    return view.issuable(bucket.optimizer) &&
           (view.arrived(bucket.gradient, Tier::Device) || view.arrived(bucket.gradient, Tier::HostPinned));
  }

  // Starts the update of the bucket whose parameters are needed first, among those whose gradients are there.
  bool start_next(const View& view, Decisions& decisions) {
    for (OpId op : view.ready_optimizer_ops()) {
      if (under_way(op)) continue;
      const Bucket& bucket = bucket_of(view, op);
      if (!can_launch(view, bucket)) continue;
      held_by_cpu_ = held_by_cpu_ || cpu_has_work();
      if (cpu_has_work()) return false;
      const auto launched = std::count_if(updates_.begin(), updates_.end(), [](const Update& u) { return u.launched; });
      held_by_device_ = held_by_device_ || launched >= kUnderWay;
      if (launched >= kUnderWay) return false;
      adapt_share(view);
      return start(view, decisions, plan(view, bucket));
    }
    return false;
  }

  // One update in its hands, and the next one.
  bool cpu_has_work() const {
    return std::count_if(updates_.begin(), updates_.end(),
                         [](const Update& update) { return update.launched && !update.uploaded(); }) >= kCpuAhead;
  }

  // The CPU has come to the last update in hand. The device should then be at that one, too: neither done with it nor
  // still at one before, nor should the bus keep the CPU waiting for its gradient.
  void adapt_share(const View& view) {
    const auto at_device =
        std::count_if(updates_.begin(), updates_.end(), [](const Update& u) { return u.launched && !u.ran; });
    const bool cpu_waits = std::any_of(updates_.begin(), updates_.end(), [&](const Update& u) {
      return u.launched && !u.uploaded() && !settled(view, u, u.on_cpu, u.bucket.gradient, Tier::HostPinned);
    });
    if (held_by_device_ || (held_by_cpu_ && (at_device > 1 || cpu_waits)))
      correction_ -= kShareStep;
    else if (held_by_cpu_ && at_device == 0)
      correction_ += kShareStep;
    held_by_cpu_ = held_by_device_ = false;
  }

  bool start(const View& view, Decisions& decisions, Update update) {
    if (!stream_in(view, decisions, update)) {
      if (!none_launched() || view.queued(Engine::Compute) > 0) return false;  // there will be room later
      update.on_device.bytes = 0;
      update.on_cpu = {0, update.lead_bytes};
    }
    launch(view, decisions, update);
    updates_.push_back(std::move(update));
    return true;
  }

  static bool stream_in(const View& view, Decisions& decisions, const Update& update) {
    return std::all_of(update.old_states.begin(), update.old_states.end(), [&](ValueId state) {
      return copy(view, decisions, update, update.on_device, state, Tier::Device) == Reply::Issued;
    });
  }

  static void launch(const View& view, Decisions& decisions, Update& update) {
    update.launched = true;
    copy(view, decisions, update, update.on_cpu, update.bucket.gradient, Tier::HostPinned);
    update.ran = update.returned = update.on_device.bytes == 0;
  }

  // With no update to go on with, brings the states that the next one needs. What an earlier update still has to bring
  // to the device is never behind them.
  bool stream_ahead(const View& view, Decisions& decisions) {
    if (!none_launched() || std::ssize(updates_) >= kUnderWay || view.compute_program().empty()) return false;
    const std::int32_t step = view.graph().op(view.compute_program().front()).step;
    const Bucket* next = step == kNone ? nullptr : next_bucket(view, step);
    if (next == nullptr) return false;
    Update update = plan(view, *next);
    if (update.resident || update.on_device.bytes == 0) return false;
    prefetch_batch(view, decisions);
    if (!stream_in(view, decisions, update)) return false;
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
  bool advance(const View& view, Decisions& decisions, Update& update) {
    bool moved = false;
    if (!update.launched) {
      if (!can_launch(view, update.bucket)) return false;
      launch(view, decisions, update);
      moved = true;
    }
    return advance_on_device(view, decisions, update) | advance_on_cpu(view, decisions, update) | moved;
  }

  bool advance_on_device(const View& view, Decisions& decisions, Update& update) {
    const auto all_there = [&](const std::vector<ValueId>& states) {
      return std::all_of(states.begin(), states.end(),
                         [&](ValueId state) { return settled(view, update, update.on_device, state, Tier::Device); });
    };
    bool moved = false;
    if (!update.ran && all_there(update.old_states)) {
      decisions.run_part(update.bucket.optimizer, update.on_device.first, update.on_device.bytes, Engine::Compute);
      update.ran = moved = true;
    }
    if (update.ran && !update.returned && (update.resident || all_there(update.new_states))) {
      if (!update.resident) return_states(view, decisions, update);
      update.returned = moved = true;
    }
    return moved;
  }

  bool advance_on_cpu(const View& view, Decisions& decisions, Update& update) {
    bool moved = false;
    while (update.updated_bytes < update.on_cpu.bytes && view.queued(Engine::CpuOptimizer) < kCpuAhead) {
      const ByteRange piece = update.piece(update.updated_bytes);
      decisions.run_part(update.bucket.optimizer, piece.first, piece.bytes, Engine::CpuOptimizer);
      update.updated_bytes += piece.bytes;
      moved = true;
    }
    while (update.uploaded_bytes < update.updated_bytes && upload(view, decisions, update)) moved = true;
    return moved;
  }

  // Brings a piece's parameters to the device, if they are updated and there is room.
  bool upload(const View& view, Decisions& decisions, Update& update) const {
    const ByteRange piece = update.piece(update.uploaded_bytes);
    const ValueId parameter = update.bucket.parameter;
    if (!settled(view, update, piece, parameter, Tier::HostPinned)) return false;
    if (parameters_.fit() && copy(view, decisions, update, piece, parameter, Tier::Device) != Reply::Issued)
      return false;
    update.uploaded_bytes += piece.bytes;
    if (update.uploaded() && parameters_.fit() && !reads_parameter(view, update))
      decisions.release(parameter, Tier::HostPinned);
    return true;
  }

  // The next update reads what this one writes: the CPU's part stays where it will be read.
  static bool reads_parameter(const View& view, const Update& update) {
    const auto& reads = view.graph().op(update.bucket.optimizer).reads;
    return std::find(reads.begin(), reads.end(), update.bucket.old_parameter) != reads.end();
  }

  void return_states(const View& view, Decisions& decisions, const Update& update) const {
    for (ValueId state : update.new_states) {
      copy(view, decisions, update, update.on_device, state, Tier::HostPinned);
      decisions.release(state, Tier::Device);
    }
    if (!parameters_.fit()) copy(view, decisions, update, update.on_device, update.bucket.parameter, Tier::HostPinned);
  }

  bool feed(const View& view, Decisions& decisions) {
    bool fed = false;
    if (!parameters_.fit()) prefetch_parameters(view, decisions, kAhead);
    while (view.queued(Engine::Compute) < kAhead && !view.compute_program().empty()) {
      const OpId next = view.compute_program().front();
      for (ValueId read : view.graph().op(next).reads)
        if (view.graph().tensor_of(read).role == Role::Parameter && !available(view, read)) return fed;
      if (decisions.run(next) != Reply::Issued) return fed;
      activations_.move(view, decisions);
      fed = true;
    }
    return fed;
  }

  // A parameter that is on its way would stop the compute lane, and with it the device's parts of updates.
  bool available(const View& view, ValueId parameter) const {
    if (view.arrived(parameter, Tier::Device)) return true;
    return !parameters_.fit() && (view.arrived(parameter, Tier::HostPinned) || view.valid(parameter, Tier::Disk));
  }

  std::int64_t device_percent_, resident_;
  double correction_ = 0;                              // of the device's share
  bool held_by_cpu_ = false, held_by_device_ = false;  // what the next update has waited for
  Activations activations_;
  DeviceParameters parameters_;
  Buckets buckets_;
  std::vector<Update> updates_;
};

}  // namespace tandem

TANDEM_POLICY(balanced, Balanced, "Each update shared by the CPU and the device, states streamed over the bus",
              "device_percent", "resident_buckets", "offload_blocks", "recompute_blocks")
