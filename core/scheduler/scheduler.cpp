#include "core/scheduler/scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/capacity.hpp"
#include "core/scheduler/collective_readers.hpp"

namespace tandem {
namespace {

// cudaMalloc aligns to 256, texture reads to 512; disk blocks and direct I/O buffers need 4,096.
constexpr std::int64_t kDeviceAlignment = 512;
constexpr std::int64_t kPageAlignment = 4096;
// Steps kept appended from the first that is not wholly issued, as their batches are made ahead. At least 3: under a
// delayed update, step s writes the parameters that step s + 2 reads, and all readers of a version must be known before
// it is written.
std::int32_t steps_ahead(const Scenario& scenario) { return scenario.pipeline.prefetch + 1; }

}  // namespace

Scheduler::Scheduler(const Scenario& scenario, const CostModel& estimate, std::unique_ptr<StepSource> source,
                     std::unique_ptr<Policy> policy, Rank rank, Rank ranks)
    : scenario_(&scenario),
      estimate_(&estimate),
      source_(std::move(source)),
      policy_(std::move(policy)),
      rank_(rank),
      traits_(policy_->traits()),
      one_pool_(scenario.machine.one_pool) {
  CHECK(rank >= 0 && ranks >= 1, rank, ranks);
  const ProductOptions& product = scenario.product;
  const auto kept = [&](Tier tier) { return product.kept_bytes[static_cast<std::size_t>(tier)]; };
  pools_.emplace_back(tier_capacity_bytes(scenario, Tier::Device), kDeviceAlignment, kept(Tier::Device));
  pools_.emplace_back(tier_capacity_bytes(scenario, Tier::HostPinned) / ranks, kPageAlignment, kept(Tier::HostPinned),
                      product.power_of_two_blocks ? Pool::Blocks::PowersOfTwo : Pool::Blocks::Aligned);
  for (Tier tier : {Tier::HostPageable, Tier::Disk})
    pools_.emplace_back(tier_capacity_bytes(scenario, tier) / ranks, kPageAlignment);
  progress_.fill(kNoCommand);
  issued_.fill(kNoCommand);
  for (auto& lane : known_) lane.fill(kNoCommand);
}

bool Scheduler::finished() const {
  if (in_flight_ > 0) return false;
  if (!failure_.empty() || interrupted_) return true;
  return started_ && source_done_ && loads_next_ == loads_.size() && saves_next_ == saves_.size() &&
         program_next_ == program_.size() && unissued_in_step_.empty();
}

std::pair<Place, std::int64_t> Scheduler::find(ValueId value, std::int64_t first_byte) const {
  const std::int64_t end = graph_.value(value).bytes;
  CHECK(first_byte >= 0 && first_byte <= end, graph_.value_name(value), first_byte, end);
  for (int t = 0; t < kTierCount; ++t) {
    const Tier tier = static_cast<Tier>(t);
    const auto holes = residency_.missing(value, tier, {first_byte, end - first_byte});
    const std::int64_t stop = holes.empty() ? end : holes.front().first;
    if (stop > first_byte)
      return {{rank_, tier, residency_.block(residency_.at(value, tier)).address(first_byte)}, stop - first_byte};
  }
  return {{}, 0};
}

// Drops what is before `next` from the list, whenever that is most of it.
static void drop_done(std::vector<OpId>& list, std::size_t& next) {
  if (next <= list.size() / 2) return;
  list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(next));
  next = 0;
}

// Where a run is asked to save, its last step may be issued by then, and forgotten as an open one: before a switch, no
// step is appended behind it.
static bool counts_in_step(const Op& op, std::int32_t first_open_step) {
  return op.step != kNone && (op.phase != Phase::Save || op.step >= first_open_step);
}

// Takes over ops appended since `first`.
void Scheduler::adopt(OpId first) {
  CHECK(first == static_cast<OpId>(ops_.size()), "ops are taken over once, in order", first, ops_.size());
  drop_done(program_, program_next_);
  drop_done(loads_, loads_next_);
  drop_done(saves_, saves_next_);
  if (forgets_) {
    for (auto id = static_cast<OpId>(ops_.size()); id < graph_.op_count(); ++id) kept_ops_.push_back(id);
    for (auto id = static_cast<ValueId>(values_.size()); id < graph_.value_count(); ++id) kept_values_.push_back(id);
  }
  ops_.grow(static_cast<std::size_t>(graph_.op_count()));
  residency_.grow(graph_.value_count());
  values_.grow(static_cast<std::size_t>(graph_.value_count()));
  latest_seen_.resize(static_cast<std::size_t>(graph_.tensor_count()), kNone);
  homes_.resize(static_cast<std::size_t>(graph_.tensor_count()));
  for (OpId id = first; id < graph_.op_count(); ++id) {
    const Op& op = graph_.op(id);
    ops_[static_cast<std::size_t>(id)].kept_writes = static_cast<std::int32_t>(op.writes.size());
    for (const Write& write : op.writes) {
      ValueId& seen = latest_seen_[static_cast<std::size_t>(graph_.value(write.value).tensor)];
      if (seen != kNone && !values_.is_gone(static_cast<std::size_t>(seen)))
        values_[static_cast<std::size_t>(seen)].next_version = write.value;
      seen = write.value;
    }
    if (counts_in_step(op, first_open_step_)) {
      CHECK(op.step >= first_open_step_, graph_.op_name(id), "belongs to a step that is wholly issued",
            first_open_step_);
      const auto ahead = static_cast<std::size_t>(op.step - first_open_step_);
      if (ahead >= unissued_in_step_.size()) unissued_in_step_.resize(ahead + 1, 0);
      ++unissued_in_step_[ahead];
    }
    if (op.phase == Phase::Load) {
      loads_.push_back(id);
    } else if (op.phase == Phase::Save || op.phase == Phase::Keep) {
      saves_.push_back(id);
    } else if (op.phase == Phase::OptimizerStep) {
      for (ValueId read : op.reads) {
        const OpId producer = graph_.value(read).producer;
        if (ops_[static_cast<std::size_t>(producer)].issued) continue;
        add_dependent(producer, id);
        ++ops_[static_cast<std::size_t>(id)].unready;
      }
      if (ops_[static_cast<std::size_t>(id)].unready == 0) ready_optimizer_.push_back(id);
    } else {
      program_.push_back(id);
    }
  }
}

void Scheduler::add_dependent(OpId producer, OpId dependent) {
  std::int32_t link = free_dependent_;
  if (link == kNone) {
    link = static_cast<std::int32_t>(dependents_.size());
    dependents_.emplace_back();
  } else {
    free_dependent_ = dependents_[static_cast<std::size_t>(link)].second;
  }
  OpState& state = ops_[static_cast<std::size_t>(producer)];
  dependents_[static_cast<std::size_t>(link)] = {dependent, state.next_dependent};
  state.next_dependent = link;
}

void Scheduler::append_steps() {
  const std::int32_t ahead = source_->needs_result() ? 1 : steps_ahead(*scenario_);
  while (!source_done_ && !result_due_ && !switch_is_due() && steps_appended_ < most_steps_ &&
         static_cast<std::int32_t>(unissued_in_step_.size()) < ahead) {
    if (forgets_) forget_over();
    const OpId first = graph_.op_count();
    source_done_ = !source_->append_step(graph_, last_result_);
    steps_appended_ += !source_done_;
    CHECK(source_done_ || graph_.op_count() > first, "a step of no ops", first);
    adopt(first);
    result_due_ = source_->needs_result() && !source_done_;
  }
  if (!source_done_ && steps_appended_ >= most_steps_) end_here();
}

std::vector<std::int32_t> collective_readers(const Graph& graph) {
  std::vector<std::int32_t> readers(static_cast<std::size_t>(graph.value_count()));
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.engine == Engine::Collective)
      for (ValueId read : op.reads) ++readers[static_cast<std::size_t>(read)];
  return readers;
}

// Batches and initial values have one source and go to the host: they are issued as soon as they are known.
void Scheduler::issue_loads() {
  std::vector<std::int32_t> gathers;  // initial values come once, batches every step: counted when it is wanted
  for (; loads_next_ < loads_.size(); ++loads_next_) {
    const OpId id = loads_[loads_next_];
    ask_homes(graph_.op(id));
    const ByteRange all = graph_.op(id).writes.empty() ? ByteRange{} : whole(graph_.op(id).writes.front().value);
    const ByteRange remote = remote_part(id, all);
    if (remote.bytes > 0)
      CHECK(run(id, remote, Engine::RemoteLoader) == Reply::Issued, graph_.op_name(id), "waits for an op");
    if (remote.bytes < all.bytes || all.bytes == 0)
      CHECK(run(id, {0, all.bytes - remote.bytes}, Engine::Loader) == Reply::Issued, graph_.op_name(id),
            "waits for an op");
    for (const Write& write : graph_.op(id).writes) {
      if (!graph_.tensor_of(write.value).persistent || replaced_by_a_load(write.value)) continue;
      if (gathers.empty()) gathers = collective_readers(graph_);
      settle_home(write.value, gathers[static_cast<std::size_t>(write.value)]);
    }
  }
}

// What workers of another host make of a load: its last items, as the policy says.
ByteRange Scheduler::remote_part(OpId id, ByteRange all) {
  const Op& op = graph_.op(id);
  if (!op.may_run_on(Engine::RemoteLoader)) return {};
  const double share =
      scenario_->pipeline.remote_share ? *scenario_->pipeline.remote_share : policy_->remote_share(View(*this), id);
  CHECK(share >= 0 && share <= 1, graph_.op_name(id), share);
  const std::int64_t wanted = std::llround(share * static_cast<double>(all.bytes));
  if (!op.divisible) return wanted > 0 ? all : ByteRange{};
  const std::int64_t first = (all.bytes - wanted) / op.cut_bytes * op.cut_bytes;
  return {first, all.bytes - first};
}

// A resumed run may load two versions of a tensor: the tensor's home is the later one's.
bool Scheduler::replaced_by_a_load(ValueId value) const {
  const ValueId next = values_[static_cast<std::size_t>(value)].next_version;
  return next != kNone && graph_.op(graph_.value(next).producer).phase == Phase::Load;
}

// Saves read what the next optimizer steps overwrite, which wait for them as for any reader. They are issued as soon as
// all that they read is, so that those updates still find them issued and may be in place. What was fetched for a save
// alone leaves again.
void Scheduler::issue_saves() {
  while (saves_next_ < saves_.size() && issuable(graph_.op(saves_[saves_next_]))) {
    const OpId id = saves_[saves_next_++];
    const Op& op = graph_.op(id);
    const Tier tier = operands_of(op.engine);
    boost::container::small_vector<ValueId, 4> fetched;
    for (ValueId read : op.reads)
      if (residency_.at(read, tier) == kNone) fetched.push_back(read);
    const ByteRange all = op.writes.empty() ? ByteRange{} : whole(op.writes.front().value);
    CHECK(run(id, all, {op.engine, op.lane_number}) == Reply::Issued, graph_.op_name(id), "waits for an op");
    for (ValueId value : fetched) release(value, tier);
  }
}

// Homes are known before anything is loaded: what will live elsewhere than in the host is placed there apart. A policy
// that looks at free bytes sees what the load and the homes named so far will leave of them.
void Scheduler::ask_homes(const Op& load) {
  const auto promise = [&](Tier tier, std::int64_t bytes, int sign) {
    const auto at = static_cast<std::size_t>(tier);
    promised_bytes_[at] += sign * pools_[at].rounded(bytes);
  };
  const Tier host = real(Tier::HostPinned);
  for (const Write& write : load.writes) promise(host, graph_.value(write.value).bytes, 1);
  for (const Write& write : load.writes) {
    const TensorId tensor = graph_.value(write.value).tensor;
    auto& home = homes_[static_cast<std::size_t>(tensor)];
    if (!graph_.tensor(tensor).persistent || home) continue;
    home = real(policy_->home(View(*this), tensor));
    if (*home != host) promise(*home, graph_.tensor(tensor).bytes, 1);
    if (*home == Tier::Device) promise(host, graph_.tensor(tensor).bytes, -1);
  }
  promised_bytes_.fill(0);
}

// Moves a freshly loaded persistent value to the tier that the policy calls its home, and owns a slot there. `gathers`:
// of its readers, the collectives.
void Scheduler::settle_home(ValueId value, std::int32_t gathers) {
  const TensorId tensor = graph_.value(value).tensor;
  const Tier home = *homes_[static_cast<std::size_t>(tensor)];
  const auto& machine = scenario_->machine.tiers;
  CHECK(
      home != Tier::HostPageable && (home != Tier::Disk || machine[static_cast<std::size_t>(home)].capacity_bytes > 0),
      "a home that the machine has not:", graph_.value_name(value), name_of(home));
  // On the device the whole has it, too: a slot of its own would lie beside that, and be empty most of the time.
  if (home == Tier::Device && gathers > 0 && gathers == graph_.value(value).readers) return;
  ++decision_;
  lack_ = {};
  if (!ensure(value, whole(value), home, false, traits_.may_evict)) {
    const Tier lacking = lack_.bytes > 0 ? lack_.tier : home;
    const std::int64_t bytes = pools_[static_cast<std::size_t>(lacking)].rounded(graph_.value(value).bytes);
    refuse_run(
        graph_.tensor(tensor).name + " of " + with_bytes(graph_.value(value).bytes) + ", which is to live " +
            (lacking == home ? "there, has no room" : "in " + std::string(name_of(home)) + ", has no room on its way"),
        lacking, bytes, bytes);
  }
  const BlockId id = residency_.at(value, home);
  CHECK(id != kNone && !residency_.block(id).home, "a tensor has one home:", graph_.value_name(value));
  residency_.order().remove(id);
  residency_.block(id).home = true;
  if (home == Tier::Device && !one_pool_) drop(value, Tier::HostPinned);
}

void Scheduler::handle(const Event& event) {
  CHECK(event.command >= 0 && event.command < static_cast<CommandId>(commands_.size()), event.command);
  const auto id = static_cast<std::size_t>(event.command);
  CHECK(!commands_.is_gone(id) && !commands_[id].done, "a second event of command", event.command);
  const CommandState command = commands_[id];
  commands_.forget(id, CommandState::over());
  const std::size_t lane = command.lane.place();
  progress_[lane] = std::max(progress_[lane], event.command);
  --queued_[lane];
  --in_flight_;
  if (event.outcome != Outcome::Finished) {
    if (event.outcome == Outcome::Failed && failure_.empty())
      failure_ = std::string(name_of(command.lane)) + ": " +
                 (command.op == kNone ? std::string("copy") : graph_.op_name(command.op)) + ": " + event.error;
    return;
  }
  if (command.op == kNone) return;
  --ops_[static_cast<std::size_t>(command.op)].running;
  if (!graph_.op(command.op).grows) return;
  last_result_ = event.result;
  result_due_ = false;
}

// Usage is for the record.
void Scheduler::take(const Input& input) {
  if (std::holds_alternative<Interrupt>(input)) end_early();
  if (std::holds_alternative<Checkpoint>(input)) save_now();
  if (const auto* rates = std::get_if<Rates>(&input)) learn(*rates);
  const auto* to = std::get_if<SwitchPolicy>(&input);
  if (to != nullptr && to->policy == kNoPolicy) return end_after(to->after_step);
  if (to != nullptr) ask_switch(to->after_step, {to->policy, to->options});
}

// After the steps that are appended, unless the run ends with a save by then.
void Scheduler::save_now() {
  if (!started_ || source_done_ || !source_->saves()) return;
  const OpId first = graph_.op_count();
  source_->append_save(graph_);
  adopt(first);
}

// An interrupt: the first ends the run after the steps that are appended, with their outcome saved, where it can be.
// Else, and by the second, it ends wherever it is.
void Scheduler::end_early() {
  if (!started_ || stop_asked_ || !source_->saves()) {
    interrupted_ = true;
    return;
  }
  stop_asked_ = true;
  if (!source_done_) end_here();  // else the last steps are under way, and end with a save
}

// No step is appended any more. Ranks that save together all end after the same step.
void Scheduler::end_here() {
  const OpId first = graph_.op_count();
  source_->append_save(graph_);
  adopt(first);
  source_done_ = stopped_ = true;
}

// As of SwitchPolicy::after_step; what lies behind is the next border. After the last step it ends by itself.
void Scheduler::end_after(std::int32_t after_step) {
  const std::int32_t asked = after_step == kNone ? 0 : after_step - scenario_->first_step;
  const std::int32_t last = std::max({asked, steps_appended_, 1});
  if (last < scenario_->steps - scenario_->first_step) most_steps_ = std::min(most_steps_, last);
}

void Scheduler::on_events(const EventBatch& batch, std::vector<Command>& out) {
  out_ = &out;
  observed_ = batch.observed;
  if (wake_ <= observed_) wake_ = kNever;
  for (const Event& event : batch.events)
    if (event.rank == rank_) handle(event);
  for (const Input& input : batch.inputs) take(input);
  if (!failure_.empty() || interrupted_) return;
  if (!started_) {
    started_ = true;
    source_->prologue(graph_);
    adopt(0);
  }
  append_steps();
  issue_loads();
  issue_saves();
  if (switch_is_due() && drained()) switch_policy();
  if (finished()) return;
  refused_ = kNone;
  Decisions decisions(*this);
  policy_->decide(View(*this), decisions);
  // Steps that the decisions completed make room for the next ones, which must be known before the policy is asked
  // again.
  append_steps();
  issue_loads();
}

void Scheduler::mark_issued(OpId id) {
  const Op& op = graph_.op(id);
  OpState& state = ops_[static_cast<std::size_t>(id)];
  CHECK(!state.issued, graph_.op_name(id), "is issued twice");
  state.issued = true;
  if (counts_in_step(op, first_open_step_)) {
    std::int32_t& unissued = unissued_in_step_[static_cast<std::size_t>(op.step - first_open_step_)];
    CHECK(op.step >= first_open_step_ && unissued > 0, graph_.op_name(id), first_open_step_);
    --unissued;
    for (; !unissued_in_step_.empty() && unissued_in_step_.front() == 0; ++first_open_step_)
      unissued_in_step_.pop_front();
  }
  for (std::int32_t link = std::exchange(state.next_dependent, kNone); link != kNone;) {
    auto& [dependent, next] = dependents_[static_cast<std::size_t>(link)];
    std::swap(next, free_dependent_);  // it is first of those that are free
    std::swap(link, free_dependent_);
    CHECK(ops_[static_cast<std::size_t>(dependent)].unready > 0, graph_.op_name(dependent), graph_.op_name(id));
    if (--ops_[static_cast<std::size_t>(dependent)].unready == 0)
      ready_optimizer_.insert(std::lower_bound(ready_optimizer_.begin(), ready_optimizer_.end(), dependent), dependent);
  }
  if (op.phase == Phase::OptimizerStep) {
    const auto ready = std::find(ready_optimizer_.begin(), ready_optimizer_.end(), id);
    CHECK(ready != ready_optimizer_.end(), graph_.op_name(id), "was not ready");
    ready_optimizer_.erase(ready);
  } else if (in_compute_program(op.phase)) {
    while (program_next_ < program_.size() && ops_[static_cast<std::size_t>(program_[program_next_])].issued)
      ++program_next_;
  }
  for (ValueId read : op.reads) ++values_[static_cast<std::size_t>(read)].issued_readers;
  for (ValueId read : op.reads)
    if (dead(read)) kill(read);
  for (const Write& write : op.writes) {
    if (write.reuses != kNone) leave_to(write.reuses, write.value);
    if (dead(write.value)) kill(write.value);
  }
}

Command& Scheduler::emit(CommandKind kind, LaneIndex lane, OpId op) {
  Command fresh;  // emplace_back() would first fill all of it with zeros, the room for lists included
  fresh.id = static_cast<CommandId>(commands_.size());
  fresh.kind = kind;
  fresh.lane = {rank_, lane};
  fresh.op = op;
  fresh.one_pool = one_pool_ && kind == CommandKind::Run;
  out_->push_back(std::move(fresh));
  Command& command = out_->back();
  commands_.push_back({lane, op});
  if (kind == CommandKind::Release) {
    commands_.forget(static_cast<std::size_t>(command.id), CommandState::over());  // it has no event
    return command;
  }
  issued_[lane.place()] = command.id;
  ++queued_[lane.place()];
  ++in_flight_;
  return command;
}

// Writes down the waits that are neither done, nor implied by the lane's own order, nor already waited for by the lane.
void Scheduler::wait_for(Command& command, const Fence& waits) {
  const std::size_t lane = command.lane.index.place();
  for (Use use : waits.uses()) {
    const std::size_t other = use.lane.place();
    if (use.id <= progress_[other]) continue;
    if (command.kind != CommandKind::Release) {
      if (other == lane || use.id <= known_[lane][other]) continue;
      known_[lane][other] = use.id;
    }
    CHECK(use.id >= 0 && use.id < command.id, "a command waits for itself or a later one:", command.id, use.id);
    command.wait_for.push_back(use.id);
  }
}

Engine Scheduler::copy_lane(Tier from, Tier to, std::int64_t bytes) const {
  const bool small = bytes <= scenario_->machine.small_copy_bytes;
  if (from == Tier::Disk) return Engine::DiskRead;
  if (to == Tier::Disk) return Engine::DiskWrite;
  if (to == Tier::Device) return small ? Engine::H2DSmall : Engine::H2D;
  return small ? Engine::D2HSmall : Engine::D2H;
}

}  // namespace tandem
