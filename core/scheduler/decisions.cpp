// How a policy's decisions are checked and turned into commands, and what it sees.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/machine/lanes.hpp"
#include "core/scheduler/scheduler.hpp"

namespace tandem {

bool Scheduler::issuable(const Op& op) const {
  return std::all_of(op.reads.begin(), op.reads.end(),
                     [&](ValueId read) { return ops_[static_cast<std::size_t>(graph_.value(read).producer)].issued; });
}

// Of the machine's lanes of a kind: where the op has least to wait for. That is behind what it reads, if such a lane is
// still at it; else where fewest commands are queued.
LaneIndex Scheduler::lane_for(const Op& op, Engine kind) const {
  if (waits_for_ranks(kind)) return {kind, op.lane_number};
  const int count = lane_count(estimate_->profile(), kind);
  if (count == 1) return kind;
  LaneIndex best = kind;
  for (int n = 1; n < count; ++n)
    if (queued_[LaneIndex(kind, n).place()] < queued_[best.place()]) best = LaneIndex(kind, n);
  CommandId latest = kNoCommand;
  const Tier tier = operands_of(kind);
  for (const ValueId read : op.reads) {
    const BlockId block = residency_.at(read, tier);
    if (block == kNone) continue;
    for (const Segment& segment : residency_.block(block).segments) {
      const Use writer = segment.writer;
      if (writer.lane.kind() != kind || writer.id <= std::max(latest, progress_[writer.lane.place()])) continue;
      latest = writer.id;
      best = writer.lane;
    }
  }
  return best;
}

Reply Scheduler::run(OpId id, ByteRange lead, LaneIndex lane) {
  CHECK(id >= 0 && id < graph_.op_count(), id, graph_.op_count());
  const Op& op = graph_.op(id);
  CHECK(op.may_run_on(lane.kind()), graph_.op_name(id), name_of(lane));
  if (ops_[static_cast<std::size_t>(id)].issued) return Reply::Issued;
  if (!issuable(op)) return Reply::NotReady;
  if (!try_run(id, lead, lane)) {
    // What is left may be too scattered for the op: move everything out and place its operands anew.
    if (!traits_.may_evict) does_not_fit(id, operands_of(lane.kind()));
    const Tier lacking = lack_.bytes > 0 ? lack_.tier : operands_of(lane.kind());
    clear_tier(operands_of(lane.kind()));
    if (lacking != operands_of(lane.kind())) clear_tier(lacking);
    packing_ = true;
    // The host can now make rows: what it is known to have no room for is asked again, if so many bytes are free.
    if (refused_bytes(Tier::HostPinned) <= pool(Tier::HostPinned).free_bytes())
      residency_.order().note_change(Tier::HostPinned);
    const bool fits = try_run(id, lead, lane);
    packing_ = false;
    if (!fits) does_not_fit(id, operands_of(lane.kind()));
  }
  if (op.phase != Phase::Save && op.phase != Phase::Keep) issue_saves();
  return Reply::Issued;
}

// Brings the operands together and emits the command; false if there is no room.
bool Scheduler::try_run(OpId id, ByteRange lead, LaneIndex lane) {
  const Op& op = graph_.op(id);
  const Tier tier = operands_of(lane.kind());
  const std::int64_t lead_bytes = op.writes.empty() ? 0 : graph_.value(op.writes.front().value).bytes;
  const bool part = lead.bytes != lead_bytes;
  CHECK(!part || op.divisible, graph_.op_name(id), "is run in parts", lead.first, lead.bytes);
  CHECK(lead.first >= 0 && lead.end() <= lead_bytes, graph_.op_name(id), lead.first, lead.bytes, lead_bytes);
  ++decision_;
  lack_ = {};
  for (ValueId read : op.reads) guard(read, tier);
  for (ValueId read : op.reads)
    if (!ensure(read, operand_range(lead, lead_bytes, graph_.value(read).bytes), tier, part, traits_.may_evict))
      return false;
  for (const Write& write : op.writes)
    if (!place_write(write, operand_range(lead, lead_bytes, graph_.value(write.value).bytes), lane, part)) return false;
  return emit_run(id, lead, lane);
}

// False if there is no room for the workspace.
bool Scheduler::emit_run(OpId id, ByteRange lead, LaneIndex lane) {
  const Op& op = graph_.op(id);
  const Tier tier = operands_of(lane.kind());
  const std::int64_t lead_bytes = op.writes.empty() ? 0 : graph_.value(op.writes.front().value).bytes;
  Fence waits;
  std::int64_t workspace = -1;
  if (op.workspace_bytes > 0 &&
      !allocate_bytes(op.workspace_bytes, tier, End::High, traits_.may_evict, lane, workspace, waits))
    return false;
  const Use use = next_use(lane);
  Command& command = emit(CommandKind::Run, lane, id);
  if (op.divisible && !op.writes.empty()) command.part = {op.writes.front().value, lead.first, lead.bytes};
  command.operands.reserve(op.reads.size() + op.writes.size() + 1);
  if (op.match_group != kNone) command.match = {op.match_group, op.match_sequence};
  for (ValueId read : op.reads) {
    const BlockId block = residency_.at(read, tier);
    const ByteRange range = operand_range(lead, lead_bytes, graph_.value(read).bytes);
    residency_.for_range(block, range, [&](Segment& segment) {
      waits.add(segment.writer);
      segment.readers.add(use);
    });
    command.operands.push_back(residency_.block(block).address(range.first));
  }
  for (const Write& write : op.writes) {
    const BlockId block = residency_.at(write.value, tier);
    const ByteRange range = operand_range(lead, lead_bytes, graph_.value(write.value).bytes);
    residency_.for_range(block, range, [&](Segment& segment) {
      waits.add(segment.writer);
      waits.add(segment.readers);
      segment.content = write.value;
      segment.writer = use;
      segment.readers.clear();
    });
    residency_.changed(write.value);
    command.operands.push_back(residency_.block(block).address(range.first));
  }
  command.operands.push_back(workspace);
  CHECK(command.operands.size() == op.reads.size() + op.writes.size() + 1, graph_.op_name(id));
  wait_for(command, waits);
  ++ops_[static_cast<std::size_t>(id)].running;
  if (workspace >= 0) {
    Fence done;
    done.add(use);
    pools_[static_cast<std::size_t>(tier)].free(workspace, op.workspace_bytes, done, progress_);
  }
  if (issue_parts(id, lead)) mark_issued(id);
  return true;
}

// Notes that a range of the op is issued; true once all of it is.
bool Scheduler::issue_parts(OpId id, ByteRange lead) {
  const Op& op = graph_.op(id);
  const std::int64_t lead_bytes = op.writes.empty() ? 0 : graph_.value(op.writes.front().value).bytes;
  OpState& state = ops_[static_cast<std::size_t>(id)];
  if (lead.bytes == lead_bytes) return true;
  state.partly = true;
  auto& ranges = parts_[id];
  const auto next = std::lower_bound(ranges.begin(), ranges.end(), lead.first,
                                     [](const ByteRange& r, std::int64_t first) { return r.first < first; });
  CHECK(next == ranges.end() || lead.end() <= next->first, graph_.op_name(id), "parts overlap");
  CHECK(next == ranges.begin() || (next - 1)->end() <= lead.first, graph_.op_name(id), "parts overlap");
  ranges.insert(next, lead);
  std::int64_t issued = 0;
  for (const ByteRange& range : ranges) issued += range.bytes;
  if (issued < lead_bytes) return false;
  parts_.erase(id);
  return true;
}

bool Scheduler::needs_room(const Op& op, const Write& write) {
  return std::find(op.reads.begin(), op.reads.end(), write.reuses) == op.reads.end();
}

std::int64_t Scheduler::missing_bytes(const Op& op, Tier tier, ValueId except) const {
  const Pool& pool = pools_[static_cast<std::size_t>(tier)];
  std::int64_t bytes = op.workspace_bytes > 0 ? pool.rounded(op.workspace_bytes) : 0;
  for (ValueId read : op.reads)
    if (read != except && residency_.at(read, tier) == kNone) bytes += pool.rounded(graph_.value(read).bytes);
  for (const Write& write : op.writes)
    if (residency_.at(write.value, tier) == kNone && needs_room(op, write) &&
        (write.reuses == kNone || residency_.at(write.reuses, tier) == kNone))
      bytes += pool.rounded(graph_.value(write.value).bytes);
  return bytes;
}

Reply Scheduler::prefetch(ValueId value, ByteRange range, Tier to) {
  CHECK(value >= 0 && value < graph_.value_count(), value, graph_.value_count());
  if (dead(value) || residency_.valid(value, to, range)) return Reply::Issued;
  const OpState& producer = ops_[static_cast<std::size_t>(graph_.value(value).producer)];
  if ((!producer.issued && !producer.partly) || !exists(value, range)) return Reply::NotReady;
  ++decision_;
  if (to == Tier::Device && residency_.at(value, to) == kNone && program_next_ < program_.size()) {
    // The next op of the compute lane must still fit beside the prefetched bytes.
    const Pool& pool = pools_[static_cast<std::size_t>(to)];
    const std::int64_t next = missing_bytes(graph_.op(program_[program_next_]), to, value);
    if (pool.free_bytes() - pool.rounded(range.bytes) < next) return refuse(value, to);
  }
  if (ensure(value, range, to, range.bytes != graph_.value(value).bytes, false)) return Reply::Issued;
  return refuse(value, to);
}

// A policy can often do without a copy to the device, since ops fetch what they lack: one to a lower tier explains
// more.
Reply Scheduler::refuse(ValueId value, Tier tier) {
  if (refused_ == kNone || refused_tier_ == Tier::Device) refused_ = value, refused_tier_ = tier;
  return Reply::NoRoom;
}

// True if every byte of the value that the block holds is in another tier as well.
bool Scheduler::spare(ValueId value, BlockId id) const {
  const Block& block = residency_.block(id);
  return std::all_of(block.segments.begin(), block.segments.end(), [&](const Segment& segment) {
    return segment.content != value || elsewhere(value, segment.range, block.tier);
  });
}

Reply Scheduler::release(ValueId value, Tier tier) {
  const BlockId id = residency_.at(value, tier);
  if (id == kNone || residency_.block(id).home) return Reply::Issued;
  if (!dead(value) && !spare(value, id)) return Reply::NotReady;
  drop(value, tier);
  return Reply::Issued;
}

Reply Decisions::run(OpId op, Engine engine) {
  Scheduler& s = *scheduler_;
  const auto& writes = s.graph_.op(op).writes;
  if (!s.ops_[static_cast<std::size_t>(op)].partly || s.ops_[static_cast<std::size_t>(op)].issued)
    return s.run(op, writes.empty() ? ByteRange{} : s.whole(writes.front().value), s.lane_for(s.graph_.op(op), engine));
  // What remains of an op that has run in parts.
  std::int64_t next = 0;
  const auto issued = s.parts_.at(op);
  const std::int64_t end = s.graph_.value(writes.front().value).bytes;
  Reply reply = Reply::Issued;
  for (std::size_t i = 0; i <= issued.size() && reply == Reply::Issued; ++i) {
    const std::int64_t stop = i < issued.size() ? issued[i].first : end;
    if (stop > next) reply = s.run(op, {next, stop - next}, s.lane_for(s.graph_.op(op), engine));
    if (i < issued.size()) next = issued[i].end();
  }
  return reply;
}

Reply Decisions::run_default(OpId op) { return run(op, scheduler_->graph_.op(op).engine); }

Reply Decisions::run_part(OpId op, std::int64_t first_byte, std::int64_t bytes, Engine engine) {
  const Op& o = scheduler_->graph_.op(op);
  CHECK(!o.writes.empty(), scheduler_->graph_.op_name(op), "has no first write to be cut");
  const std::int64_t lead = scheduler_->graph_.value(o.writes.front().value).bytes;
  if (!o.divisible) {
    CHECK(first_byte == 0 && bytes == lead, scheduler_->graph_.op_name(op), first_byte, bytes, lead);
    return run(op, engine);
  }
  CHECK(first_byte >= 0 && bytes > 0 && first_byte + bytes <= lead, first_byte, bytes, lead);
  CHECK(first_byte % o.cut_bytes == 0 && (bytes % o.cut_bytes == 0 || first_byte + bytes == lead), first_byte, bytes);
  return scheduler_->run(op, {first_byte, bytes}, scheduler_->lane_for(o, engine));
}

// Policies may name values that are over: those are nowhere, and nothing is left to do for them.
Reply Decisions::copy(ValueId value, Tier to) {
  if (scheduler_->forgotten(value)) return Reply::Issued;
  return scheduler_->prefetch(value, scheduler_->whole(value), scheduler_->real(to));
}
Reply Decisions::copy_part(ValueId value, std::int64_t first_byte, std::int64_t bytes, Tier to) {
  if (scheduler_->forgotten(value)) return Reply::Issued;
  CHECK(first_byte >= 0 && bytes > 0 && first_byte + bytes <= scheduler_->graph_.value(value).bytes, first_byte, bytes);
  return scheduler_->prefetch(value, {first_byte, bytes}, scheduler_->real(to));
}
Reply Decisions::release(ValueId value, Tier tier) {
  return scheduler_->forgotten(value) ? Reply::Issued : scheduler_->release(value, scheduler_->real(tier));
}
void Decisions::keep(ValueId value, Tier tier) {
  if (scheduler_->forgotten(value)) return;
  if (const BlockId id = scheduler_->residency_.at(value, scheduler_->real(tier)); id != kNone)
    scheduler_->residency_.order().keep(id);
}
void Decisions::wake_at(TimeNs time) { scheduler_->wake_ = std::min(scheduler_->wake_, time); }

TimeNs View::observed() const { return scheduler_->observed_; }
const Graph& View::graph() const { return scheduler_->graph_; }
const CostModel& View::estimate() const { return *scheduler_->estimate_; }
const Scenario& View::scenario() const { return *scheduler_->scenario_; }
Rank View::rank() const { return scheduler_->rank_; }
std::span<const OpId> View::compute_program() const {
  return std::span<const OpId>(scheduler_->program_).subspan(scheduler_->program_next_);
}
std::span<const OpId> View::ready_optimizer_ops() const { return scheduler_->ready_optimizer_; }
bool View::issued(OpId op) const {
  const auto at = static_cast<std::size_t>(op);
  return scheduler_->ops_.is_gone(at) || scheduler_->ops_[at].issued;
}
bool View::issuable(OpId op) const { return scheduler_->issuable(scheduler_->graph_.op(op)); }
bool View::finished(OpId op) const {
  if (scheduler_->ops_.is_gone(static_cast<std::size_t>(op))) return true;
  const auto& state = scheduler_->ops_[static_cast<std::size_t>(op)];
  return state.issued && state.running == 0;
}
bool View::over(ValueId value) const { return scheduler_->forgotten(value) || scheduler_->dead(value); }
bool View::valid(ValueId value, Tier tier) const {
  return !scheduler_->forgotten(value) &&
         scheduler_->residency_.valid(value, scheduler_->real(tier), scheduler_->whole(value));
}
bool View::arrived(ValueId value, Tier tier) const {
  return !scheduler_->forgotten(value) &&
         scheduler_->residency_.arrived(value, scheduler_->real(tier), scheduler_->whole(value), scheduler_->progress_);
}
bool View::valid_part(ValueId value, std::int64_t first_byte, std::int64_t bytes, Tier tier) const {
  return !scheduler_->forgotten(value) &&
         scheduler_->residency_.valid(value, scheduler_->real(tier), {first_byte, bytes});
}
bool View::arrived_part(ValueId value, std::int64_t first_byte, std::int64_t bytes, Tier tier) const {
  return !scheduler_->forgotten(value) &&
         scheduler_->residency_.arrived(value, scheduler_->real(tier), {first_byte, bytes}, scheduler_->progress_);
}
int View::queued(Engine kind) const {
  int queued = 0;
  for (int n = 0; n < lane_count(estimate().profile(), kind); ++n)
    queued += scheduler_->queued_[LaneIndex(kind, n).place()];
  return queued;
}
int View::computing() const { return queued(Engine::Compute) + queued(Engine::CpuCompute); }
std::int64_t View::free_bytes(Tier tier) const {
  const auto at = static_cast<std::size_t>(scheduler_->real(tier));
  const std::int64_t free = scheduler_->named_bytes_ ? scheduler_->pool(scheduler_->real(tier)).capacity_bytes() -
                                                           (*scheduler_->named_bytes_)[at]
                                                     : scheduler_->pool(scheduler_->real(tier)).free_bytes();
  return std::max<std::int64_t>(free - scheduler_->promised_bytes_[at], 0);
}
std::int64_t View::capacity_bytes(Tier tier) const { return scheduler_->pool(scheduler_->real(tier)).capacity_bytes(); }
std::int64_t View::missing_bytes(OpId op) const {
  return scheduler_->missing_bytes(scheduler_->graph_.op(op), Tier::Device, kNone);
}

}  // namespace tandem
