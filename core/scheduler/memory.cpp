// How the scheduler places, fetches, evicts and frees bytes. Everything here happens in issue order: bytes count as
// free once their release is issued, and whoever takes them waits for what last used them.
#include <algorithm>
#include <string>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/scheduler/scheduler.hpp"

namespace tandem {
namespace {

constexpr Tier kTiers[] = {Tier::Device, Tier::HostPinned, Tier::HostPageable, Tier::Disk};

}  // namespace

void Scheduler::guard(ValueId value, Tier tier) {
  const BlockId id = residency_.at(value, tier);
  if (id == kNone) return;
  residency_.block(id).guard = decision_;
  residency_.touch(id);
}

// True if the block's `range` holds bytes of another value that a copy of this one would destroy: during an in-place
// update by parts, two versions share a block. The old version's bytes are spent where the new one's exist, unless
// something other than the update still reads them.
bool Scheduler::foreign(ValueId value, BlockId id, ByteRange range) const {
  const auto spent = [&](ValueId content) {
    const auto& update = graph_.op(graph_.value(value).producer);
    return values_[static_cast<std::size_t>(content)].next_version == value &&
           unissued_readers(content) <= std::count(update.reads.begin(), update.reads.end(), content);
  };
  const auto& segments = residency_.block(id).segments;
  return std::any_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    return segment.content != value && segment.content != kNone && segment.range.first < range.end() &&
           range.first < segment.range.end() && !spent(segment.content);
  });
}

// True unless a part of `range` is gone: overwritten by a part of an in-place update that has consumed it.
bool Scheduler::exists(ValueId value, ByteRange range) const {
  boost::container::small_vector<ByteRange, 2> gaps{range};
  for (Tier tier : kTiers) {
    boost::container::small_vector<ByteRange, 2> left;
    for (ByteRange gap : gaps)
      for (ByteRange hole : residency_.missing(value, tier, gap)) left.push_back(hole);
    gaps = std::move(left);
    if (gaps.empty()) return true;
  }
  return false;
}

// Makes `range` of the value valid in the tier; false if there is no room.
bool Scheduler::ensure(ValueId value, ByteRange range, Tier tier, bool part, bool may_evict) {
  if (!residency_.valid(value, tier, range)) {
    BlockId id = residency_.at(value, tier);
    if (id != kNone && (!residency_.block(id).covers(range) || foreign(value, id, range))) {
      if (!evict(id)) return false;
      id = kNone;
    }
    if (id == kNone) id = take_over(value, range, tier);
    if (id == kNone) {
      const bool only_part = part && graph_.tensor_of(value).role == Role::OptimizerState;
      if (allocate(value, only_part ? range : whole(value), tier, may_evict) == kNone) return false;
    }
    guard(value, tier);
    // Asked anew each time: bringing one part may move another.
    for (auto gaps = residency_.missing(value, tier, range); !gaps.empty();
         gaps = residency_.missing(value, tier, range))
      if (!fetch(value, gaps.front(), tier, part, may_evict)) return false;
  }
  guard(value, tier);
  return true;
}

// Copies the first bytes of a gap from the nearest tier that has them.
bool Scheduler::fetch(ValueId value, ByteRange gap, Tier tier, bool part, bool may_evict) {
  CHECK(gap.first >= 0 && gap.bytes > 0 && gap.end() <= graph_.value(value).bytes, graph_.value_name(value), gap.first,
        gap.bytes);
  for (Tier from : kTiers) {
    if (from == tier) continue;
    const auto holes = residency_.missing(value, from, gap);
    ByteRange found = gap;
    if (!holes.empty()) found.bytes = holes.front().first - gap.first;
    if (found.bytes <= 0) continue;
    // Device and disk meet in host memory, if that is another.
    const bool staged =
        !one_pool_ && ((from == Tier::Disk && tier == Tier::Device) || (from == Tier::Device && tier == Tier::Disk));
    if (staged && !ensure(value, found, Tier::HostPinned, part, may_evict)) return false;
    copy(value, found, staged ? Tier::HostPinned : from, tier);
    // What was on its way is no operand: the host may need its room for the next one.
    if (staged) residency_.block(residency_.at(value, Tier::HostPinned)).guard = kUnguarded;
    return true;
  }
  CHECK(false, "a value that is needed is nowhere:", graph_.value_name(value));
  return false;
}

// Makes a version share the storage of the one before, which it is to replace there; kNone if it cannot.
BlockId Scheduler::take_over(ValueId value, ByteRange range, Tier tier) {
  const Op& op = graph_.op(graph_.value(value).producer);
  const auto write = std::find_if(op.writes.begin(), op.writes.end(), [&](const Write& w) { return w.value == value; });
  CHECK(write != op.writes.end(), graph_.value_name(value), "is not written by its producer");
  if (write->reuses == kNone || forgotten(write->reuses)) return kNone;
  const BlockId id = residency_.at(write->reuses, tier);
  if (id == kNone || !residency_.block(id).covers(range) || !may_overwrite(op, write->reuses, tier)) return kNone;
  residency_.block(id).holders.push_back(value);
  residency_.at(value, tier) = id;
  residency_.changed(value);
  return id;
}

bool Scheduler::place_write(const Write& write, ByteRange range, LaneIndex lane, bool part) {
  const Tier tier = operands_of(lane.kind());
  BlockId id = residency_.at(write.value, tier);
  if (id != kNone && !residency_.block(id).covers(range)) {
    if (!evict(id)) return false;
    id = kNone;
  }
  if (id == kNone) id = take_over(write.value, range, tier);
  if (id == kNone) {
    const bool only_part = part && graph_.tensor_of(write.value).role == Role::OptimizerState;
    if (allocate(write.value, only_part ? range : whole(write.value), tier, traits_.may_evict, lane) == kNone)
      return false;
  }
  guard(write.value, tier);
  return true;
}

// An op may take over the storage of a version that only it still reads, or that is whole somewhere else.
bool Scheduler::may_overwrite(const Op& op, ValueId value, Tier tier) const {
  const auto own = static_cast<std::int32_t>(std::count(op.reads.begin(), op.reads.end(), value));
  if (unissued_readers(value) <= own) return true;
  return elsewhere(value, whole(value), tier);
}

bool Scheduler::elsewhere(ValueId value, ByteRange range, Tier tier) const {
  return std::any_of(std::begin(kTiers), std::end(kTiers),
                     [&](Tier other) { return other != tier && residency_.valid(value, other, range); });
}

// Nothing moves within the host or the disk, so that only homes lie at their low end: they come first, stay, and leave
// no holes, where what is on its way to another tier would leave one with each value.
End Scheduler::end_of(ValueId value, Tier tier) const {
  const Value& it = graph_.value(value);
  if (tier == Tier::Device) return it.transient ? End::High : End::Low;
  return homes_[static_cast<std::size_t>(it.tensor)] == tier ? End::Low : End::High;
}

BlockId Scheduler::allocate(ValueId value, ByteRange range, Tier tier, bool may_evict, std::optional<LaneIndex> lane) {
  std::int64_t offset = 0;
  Fence last_users;
  if (!allocate_bytes(range.bytes, tier, end_of(value, tier), may_evict, lane, offset, last_users)) return kNone;
  return residency_.add(value, tier, offset, range, last_users);
}

bool Scheduler::allocate_bytes(std::int64_t bytes, Tier tier, End end, bool may_evict, std::optional<LaneIndex> lane,
                               std::int64_t& offset, Fence& waits) {
  Pool& pool = pools_[static_cast<std::size_t>(tier)];
  for (;;) {
    if (const auto place = pool.allocate(bytes, end, progress_, waits, lane, packing_)) {
      offset = *place;
      return true;
    }
    if (tier == Tier::Device && make_hole(bytes)) continue;
    if (bytes <= pool.capacity_bytes() && may_evict && make_room(tier)) continue;
    // Where nothing is in flight, a policy that waits for this room may wait for ever.
    const bool last_resort = packing_ || (tier == Tier::HostPinned && in_flight_ == 0);
    if (last_resort && tier <= Tier::HostPinned && make_row(tier, bytes)) continue;
    lack_ = {tier, pool.rounded(bytes)};
    return false;
  }
}

void Scheduler::drop(ValueId value, Tier tier) {
  BlockId& at = residency_.at(value, tier);
  const BlockId id = at;
  if (id == kNone) return;
  at = kNone;
  Block& block = residency_.block(id);
  for (Segment& segment : block.segments)
    if (segment.content == value) segment.content = kNone;
  const auto holder = std::find(block.holders.begin(), block.holders.end(), value);
  CHECK(holder != block.holders.end(), graph_.value_name(value), "refers to a block that is not its own");
  block.holders.erase(holder);
  if (block.holders.empty())
    free_block(id, value);
  else
    residency_.order().revive(id), residency_.note_change(id);
}

void Scheduler::free_block(BlockId id, ValueId last_holder) {
  const Block& block = residency_.block(id);
  Fence fence;
  for (const Segment& segment : block.segments) {
    fence.add(segment.writer);
    fence.add(segment.readers);
  }
  give_back(last_holder, block.tier, block.offset, block.range, fence);
  residency_.remove(id);
}

// Frees the bytes that held a range of a value, and notes when they are.
void Scheduler::give_back(ValueId holder, Tier tier, std::int64_t offset, ByteRange range, Fence users) {
  users.prune(progress_);
  Command& note = emit(CommandKind::Release, Engine::Compute, kNone);
  note.part = {holder, range.first, range.bytes};
  note.source = {rank_, tier, offset};
  wait_for(note, users);
  pools_[static_cast<std::size_t>(tier)].free(offset, range.bytes, users, progress_);
  residency_.order().note_change(tier);
}

// Ends the sharing of a block after an in-place update: it is the new version's alone. Readers of the old one that are
// yet to come find it in another tier.
void Scheduler::leave_to(ValueId old_version, ValueId new_version) {
  for (Tier tier : kTiers)
    if (const BlockId id = residency_.at(old_version, tier); id != kNone && id == residency_.at(new_version, tier))
      drop(old_version, tier);
}

bool Scheduler::dead(ValueId id) const {
  const Value& value = graph_.value(id);
  const std::int32_t unissued = value.readers - values_[static_cast<std::size_t>(id)].issued_readers;
  CHECK(unissued >= 0, graph_.value_name(id), "was read more often than it has readers");
  return value.superseded && unissued == 0 && ops_[static_cast<std::size_t>(value.producer)].issued;
}

// Gives up the storage of a value that nothing reads any more. Home slots pass to the next version.
void Scheduler::kill(ValueId value) {
  const ValueId next = values_[static_cast<std::size_t>(value)].next_version;
  for (Tier tier : kTiers) {
    const BlockId id = residency_.at(value, tier);
    if (id == kNone) continue;
    if (residency_.block(id).home && next != kNone) {
      const BlockId successor = residency_.at(next, tier);
      if (successor == kNone) {
        residency_.block(id).holders.push_back(next);
        residency_.at(next, tier) = id;
        residency_.changed(next);
      } else if (successor != id) {
        residency_.block(id).home = false;
        residency_.block(successor).home = true;
        residency_.order().remove(successor);
      }
    }
    drop(value, tier);
  }
}

void Scheduler::copy(ValueId value, ByteRange range, Tier from, Tier to) {
  const BlockId source = residency_.at(value, from), target = residency_.at(value, to);
  CHECK(from != to && target != kNone && residency_.valid(value, from, range), graph_.value_name(value), name_of(from),
        name_of(to), range.first, range.bytes);
  const Engine lane = copy_lane(from, to, range.bytes);
  const Use use = next_use(lane);
  Fence waits;
  residency_.for_range(source, range, [&](Segment& segment) {
    waits.add(segment.writer);
    segment.readers.add(use);
  });
  residency_.for_range(target, range, [&](Segment& segment) {
    waits.add(segment.writer);
    waits.add(segment.readers);
    segment.content = value;
    segment.writer = use;
    segment.readers.clear();
  });
  residency_.changed(value);
  Command& command = emit(CommandKind::Copy, lane, kNone);
  command.part = {value, range.first, range.bytes};
  command.source = {rank_, from, residency_.block(source).address(range.first)};
  command.target = {rank_, to, residency_.block(target).address(range.first)};
  wait_for(command, waits);
}

// What a full tier holds, and what the tiers below it have left: the middle of a message.
std::string Scheduler::usage(Tier tier) const {
  const Pool& memory = pools_[static_cast<std::size_t>(tier)];
  std::array<std::int64_t, kRoleCount> held{};
  residency_.for_each(tier, [&](BlockId, const Block& block) {
    held[static_cast<std::size_t>(graph_.tensor_of(block.holders.front()).reported_role())] += block.range.bytes;
  });
  std::string text = "; capacity " + with_bytes(memory.capacity_bytes());
  if (memory.kept_bytes() > 0) text += " beside " + with_bytes(memory.kept_bytes()) + " that the product keeps";
  text += ", in use " + with_bytes(memory.charged_bytes()) + ":";
  for (int role = 0; role < kRoleCount; ++role)
    if (held[static_cast<std::size_t>(role)] > 0)
      text.append(" ")
          .append(name_of(static_cast<Role>(role)))
          .append(" ")
          .append(std::to_string(held[static_cast<std::size_t>(role)]));
  for (Tier below : kTiers)
    if (below > tier && pools_[static_cast<std::size_t>(below)].capacity_bytes() > 0)
      text += "; " + std::string(name_of(below)) + ": " +
              std::to_string(pools_[static_cast<std::size_t>(below)].free_bytes()) + " free";
  return text;
}

// Where it is another tier than the op's that had no room (operands from the disk pass through the host), that one.
void Scheduler::does_not_fit(OpId id, Tier tier) const {
  const Op& op = graph_.op(id);
  const std::int64_t row = lack_.bytes;
  if (row > 0 && lack_.tier != tier)
    refuse_run(graph_.op_name(id) + " needs " + with_bytes(row) + " on the way of an operand", lack_.tier, row, row);
  std::int64_t operands = op.workspace_bytes;
  for (ValueId read : op.reads) operands += graph_.value(read).bytes;
  for (const Write& write : op.writes)
    if (needs_room(op, write)) operands += graph_.value(write.value).bytes;
  refuse_run(graph_.op_name(id) + " needs " + with_bytes(operands) + " at once", tier, missing_bytes(op, tier, kNone),
             row);
}

void Scheduler::explain_stall() const {
  if (refused_ != kNone) {
    const std::int64_t bytes = pools_[static_cast<std::size_t>(refused_tier_)].rounded(graph_.value(refused_).bytes);
    const bool beside_next = refused_tier_ == Tier::Device && program_next_ < program_.size();
    const std::int64_t next =
        beside_next ? missing_bytes(graph_.op(program_[program_next_]), refused_tier_, refused_) : 0;
    refuse_run(graph_.tensor_of(refused_).name + " of " + with_bytes(graph_.value(refused_).bytes) +
                   " has no room there, and nothing goes on before it has",
               refused_tier_, bytes + next, bytes);
  }
  // A policy may have seen by itself that there is no room for what comes next.
  const auto require_room = [&](OpId op) {
    const Tier tier = operands_of(graph_.op(op).engine);
    if (missing_bytes(graph_.op(op), tier, kNone) > pools_[static_cast<std::size_t>(tier)].free_bytes())
      does_not_fit(op, tier);
  };
  for (const OpId op : ready_optimizer_) require_room(op);
  if (program_next_ < program_.size()) require_room(program_[program_next_]);
}

}  // namespace tandem
