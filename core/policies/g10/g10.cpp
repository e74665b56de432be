// G10 (Zhang et al., MICRO 2023): all computing is the GPU's, in program order, and every tensor (parameter, gradient,
// optimizer state, activation) may leave between two uses. What a step uses and when is known beforehand, so migrations
// are planned on it: who relieves the device most for the time that its ways take leaves right after a use, to the SSD,
// or to the host where that way is taken, and returns in time for the next one
// (core/policies/g10/migration_plan.hpp). What no plan makes fit is left to demand: fetch at need, evict least
// recently used, as the paper's unified memory does. `host: false` is its G10-GDS: values leave to the SSD alone.
//
// The paper's copies go from the GPU to the SSD directly; here they pass through the host, which keeps room for a few
// values on their way. A way begins with the command after which, or ahead of which, it is planned: bytes change hands
// in the order of commands, and who takes them waits, so that a plan that times wrongly is slow but never short of
// room.
#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/step_memory.hpp"
#include "core/policies/g10/migration_plan.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {

class G10 final : public Policy {
 public:
  explicit G10(const Scenario& scenario)
      : host_(bool_option(scenario, "host", true)), disk_(tier_capacity_bytes(scenario, Tier::Disk) > 0) {
    if (!host_ && !disk_) throw ConfigError("policy.host: the machine has no disk; allowed: true");
  }

  PolicyTraits traits() const override {
    std::vector<Binding> bindings = host_ ? std::vector<Binding>{} : bind_all(Tier::Disk, "host", "false");
    for (Binding& binding : bindings) binding.not_on_host = true;
    return {.bindings = std::move(bindings)};
  }

  Tier home(const View& view, TensorId tensor) override {
    if (works_.empty()) begin_step(view, view.graph().era().first_step);
    for (const Migration& migration : plan_.migrations)
      if (migration.period.tensor == tensor) return migration.to;
    // It stays on the device once it is there; should it have to leave, it is best off on the host.
    const std::int64_t bytes = view.graph().tensor(tensor).bytes;
    if (!disk_) return Tier::HostPinned;
    if (homes_bytes_ + bytes > room_.host_bytes && bytes <= view.free_bytes(Tier::Disk)) return Tier::Disk;
    homes_bytes_ += bytes;
    return Tier::HostPinned;
  }

  void decide(const View& view, Decisions& decisions) override {
    batches_.fetch(view, decisions);
    forget_written(view, decisions);
    while (view.computing() < kAhead) {
      const OpId next = next_op(view);
      if (next == kNone) return;
      if (view.graph().op(next).step != step_) begin_step(view, view.graph().op(next).step);
      CHECK(place_ < std::ssize(ops_) && ops_[static_cast<std::size_t>(place_)] == next,
            "a step takes another way than planned", view.graph().op_name(next), place_, ops_.size());
      if (is_making_room(view, next)) return;
      bring_back(view, decisions);
      if (!run(decisions, view.graph().op(next), next)) return;
      send_away(view, decisions, next);
      ++place_;
    }
  }

 private:
  // In graph order, updates included.
  static OpId next_op(const View& view) {
    const auto program = view.compute_program();
    const auto updates = view.ready_optimizer_ops();
    if (updates.empty()) return program.empty() ? kNone : program.front();
    return program.empty() ? updates.front() : std::min(program.front(), updates.front());
  }
  static bool run(Decisions& decisions, const Op& op, OpId id) {
    return decisions.run(id, op.may_run_on(Engine::Compute) ? Engine::Compute : op.engine) == Reply::Issued;
  }

  // --- the plan ---

  void begin_step(const View& view, std::int32_t step) {
    const Graph& graph = view.graph();
    CHECK(step > step_ || works_.empty(), "steps come in order", step, step_);
    ops_ = step_ops(graph, step, ops_.empty() ? graph.era().first_op : ops_.front());
    next_ops_ = ops_.empty() ? ops_ : step_ops(graph, step + 1, ops_.back());
    step_ = step;
    place_ = 0;
    std::vector<WorkId> works;
    for (OpId op : ops_) works.push_back(graph.op(op).work);
    if (works == works_) return;
    works_ = std::move(works);
    make_plan(view);
  }

  void make_plan(const View& view) {
    const StepUse use = use_of_step(view.graph(), view.estimate(), ops_);
    std::int64_t largest = 0;
    for (const InactivePeriod& period : use.periods) largest = std::max(largest, period.bytes);
    const std::int64_t host = view.capacity_bytes(Tier::HostPinned) - (disk_ ? kValuesOnTheirWay * largest : 0);
    // Values of all sizes that come and go take apart what lies in a row: more is lost than where a few go.
    room_ = {.device_bytes = view.capacity_bytes(Tier::Device) - 3 * lost_in_holes(view.graph()),
             .host_bytes = host_ ? std::max(host, std::int64_t{0}) : 0,
             .disk = disk_};
    plan_ = plan_migrations(use, view.estimate(), room_);
    CHECK(plan_.live_bytes.size() == ops_.size() && plan_.host_bytes.size() == ops_.size(), plan_.live_bytes.size(),
          ops_.size());
    for (const std::int64_t bytes : plan_.host_bytes) homes_bytes_ = std::max(homes_bytes_, bytes);
  }

  // --- following it ---

  // The value of the tensor that an op has left behind, or is to read; kNone where the step is not as planned.
  static ValueId left_by(const Graph& graph, OpId id, TensorId tensor) {
    for (const Write& write : graph.op(id).writes)
      if (graph.value(write.value).tensor == tensor) return write.value;
    return read_by(graph, id, tensor);
  }
  static ValueId read_by(const Graph& graph, OpId id, TensorId tensor) {
    for (ValueId read : graph.op(id).reads)
      if (graph.value(read).tensor == tensor) return read;
    return kNone;
  }

  void bring_back(const View& view, Decisions& decisions) {
    fetch_for(view, decisions, place_ + 1);
    const auto length = static_cast<std::int32_t>(ops_.size());
    for (const Migration& migration : plan_.migrations) {
      if (migration.back % length != place_) continue;
      const auto& ops = migration.back < length && migration.period.before >= length ? next_ops_ : ops_;
      const auto place = static_cast<std::size_t>(migration.period.before % length);
      if (place >= ops.size()) continue;
      if (const ValueId value = read_by(view.graph(), ops[place], migration.period.tensor); value != kNone)
        returning_.push_back(value);
    }
    // Those without room wait for the next op; in the end, theirs fetches them.
    std::erase_if(returning_, [&](ValueId value) { return fetch(view, decisions, value); });
  }

  // What had to leave unplanned comes ahead of all that is wanted later.
  void fetch_for(const View& view, Decisions& decisions, std::int32_t place) {
    if (static_cast<std::size_t>(place) >= ops_.size()) return;
    for (ValueId read : view.graph().op(ops_[static_cast<std::size_t>(place)]).reads)
      if (!view.valid(read, Tier::Device)) fetch(view, decisions, read);
  }

  // False if there is no room now.
  bool fetch(const View& view, Decisions& decisions, ValueId value) {
    const auto copy = [&] { return decisions.copy(value, Tier::Device); };
    Reply reply = copy();
    while (reply == Reply::NoRoom && view.free_bytes(Tier::Device) >= view.graph().value(value).bytes &&
           drop_oldest(decisions))
      reply = copy();
    if (reply == Reply::NoRoom) return false;
    std::erase(on_their_way_, value);
    decisions.release(value, Tier::HostPinned);
    return true;
  }

  // In the order in which they were made, as neighbours in memory: what they leave is one piece soon.
  void send_away(const View& view, Decisions& decisions, OpId op) {
    std::map<ValueId, Tier> leaving;
    for (const Migration& migration : plan_.migrations)
      if (migration.period.after == place_)
        if (const ValueId value = left_by(view.graph(), op, migration.period.tensor); value != kNone)
          leaving[value] = migration.to;
    for (const auto& [value, to] : leaving) {
      while (decisions.copy(value, to) == Reply::NoRoom && drop_oldest(decisions)) {
      }
      if (decisions.release(value, Tier::Device) == Reply::Issued) leaving_.push_back(value);
      if (to == Tier::Disk) on_their_way_.push_back(value);
    }
  }

  // True while copies out have yet to give up the bytes that the op would take: better that it takes those that are
  // given up first than waits for any.
  bool is_making_room(const View& view, OpId next) {
    std::erase_if(leaving_, [&](ValueId value) {
      return view.arrived(value, Tier::HostPinned) || !view.valid(value, Tier::HostPinned);
    });
    std::int64_t room = view.free_bytes(Tier::Device);
    for (ValueId value : leaving_) room -= view.graph().value(value).bytes;
    return !leaving_.empty() && room < view.missing_bytes(next);
  }

  // What is on its way to the disk can be taken from the host until its bytes are wanted, or it has arrived.
  bool drop_oldest(Decisions& decisions) {
    if (on_their_way_.empty()) return false;
    decisions.release(on_their_way_.front(), Tier::HostPinned);
    on_their_way_.pop_front();
    return true;
  }
  void forget_written(const View& view, Decisions& decisions) {
    while (!on_their_way_.empty() &&
           (view.arrived(on_their_way_.front(), Tier::Disk) || !view.valid(on_their_way_.front(), Tier::Disk)))
      drop_oldest(decisions);
  }

  // One op runs and one waits: room is taken when an op is issued, and the less has left by then the longer it waits.
  static constexpr int kAhead = 2;
  static constexpr std::int64_t kValuesOnTheirWay = 4;  // on the host, to the disk and from it

  bool host_, disk_;
  Room room_;
  MigrationPlan plan_;
  std::vector<WorkId> works_;  // of the step that was planned
  std::int64_t homes_bytes_ = 0;

  std::int32_t step_ = kNone;
  std::int32_t place_ = 0;            // of the next op in its step
  std::vector<OpId> ops_, next_ops_;  // of this step and the next one
  std::vector<ValueId> returning_;    // due, but not under way
  std::vector<ValueId> leaving_;      // released, while the copy out may still read them
  std::deque<ValueId> on_their_way_;  // to the disk, and still on the host
  BatchesAhead batches_;
};

}  // namespace tandem

TANDEM_POLICY(g10, G10, "G10: every tensor migrates between uses, as planned on the whole step", "host")
