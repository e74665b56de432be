#include "core/scheduler/happens_before.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {

HappensBefore::HappensBefore(const Graph& graph, Rank rank, EventLog* next) : graph_(graph), rank_(rank), next_(next) {
  seen_.fill(kNoCommand);
  for (Clock& clock : lane_clocks_) clock.fill(kNoCommand);
}

void HappensBefore::append(const EventBatch& batch) {
  if (next_) next_->append(batch);
  for (const Event& event : batch.events) {
    if (event.rank != rank_) continue;
    CHECK(event.command >= 0 && event.command < std::ssize(lanes_), "an event of no command", event.command);
    auto& seen = seen_[lanes_[static_cast<std::size_t>(event.command)].place()];
    seen = std::max(seen, event.command);
  }
}

void HappensBefore::append(std::span<const Command> commands) {
  if (next_) next_->append(commands);
  for (const Command& command : commands)
    if (command.lane.rank == rank_) check(command);
}

void HappensBefore::check(const Command& command) {
  CHECK(command.id == static_cast<CommandId>(clocks_.size()), "ids are dense", command.id, clocks_.size());
  const std::size_t lane = command.lane.index.place();
  Clock clock = seen_;
  const auto join = [&](const Clock& other) {
    for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
  };
  const bool works = command.kind != CommandKind::Release;
  if (works) join(lane_clocks_[lane]);
  for (CommandId id : command.wait_for) {
    if (id >= command.id) {
      violation_ = "command " + std::to_string(command.id) + " waits for a later one";
      continue;
    }
    join(clocks_[static_cast<std::size_t>(id)]);
    auto& other = clock[lanes_[static_cast<std::size_t>(id)].place()];
    other = std::max(other, id);
  }
  clocks_.push_back(clock);
  lanes_.push_back(command.lane.index);
  if (works) {
    lane_clocks_[lane] = clock;
    lane_clocks_[lane][lane] = command.id;
  }
  ++checked_;
  if (command.kind == CommandKind::Copy) {
    touch(command, clock, command.source.tier, command.source.offset, command.part.bytes, false);
    touch(command, clock, command.target.tier, command.target.offset, command.part.bytes, true);
  } else if (command.kind == CommandKind::Run) {
    const Op& op = graph_.op(command.op);
    CHECK(command.operands.size() == op.reads.size() + op.writes.size() + 1, graph_.op_name(command.op));
    const Tier tier = command.operands_in();
    const std::int64_t lead_bytes = op.writes.empty() ? 0 : graph_.value(op.writes.front().value).bytes;
    const ByteRange lead =
        op.divisible ? ByteRange{command.part.first_byte, command.part.bytes} : ByteRange{0, lead_bytes};
    std::size_t i = 0;
    for (ValueId read : op.reads)
      touch(command, clock, tier, command.operands[i++],
            operand_range(lead, lead_bytes, graph_.value(read).bytes).bytes, false);
    for (const Write& write : op.writes)
      touch(command, clock, tier, command.operands[i++],
            operand_range(lead, lead_bytes, graph_.value(write.value).bytes).bytes, true);
    if (op.workspace_bytes > 0) touch(command, clock, tier, command.operands[i], op.workspace_bytes, true);
  }
}

// Makes a stretch begin at `at` where one that covers it does.
void HappensBefore::cut(Memory& memory, std::int64_t at) {
  auto it = memory.upper_bound(at);
  if (it == memory.begin()) return;
  --it;
  if (it->first == at || it->second.end <= at) return;
  Stretch right = it->second;
  it->second.end = at;
  memory.emplace(at, std::move(right));
}

void HappensBefore::touch(const Command& command, const Clock& clock, Tier tier, std::int64_t offset,
                          std::int64_t bytes, bool write) {
  Memory& memory = memories_[static_cast<std::size_t>(tier)];
  const Touch me{command.lane.index, command.id};
  cut(memory, offset);
  cut(memory, offset + bytes);
  std::int64_t next = offset;
  for (auto it = memory.lower_bound(offset); next < offset + bytes; ++it) {
    const std::int64_t gap_end = it == memory.end() ? offset + bytes : std::min(it->first, offset + bytes);
    if (next < gap_end) {  // bytes never touched before
      it = memory.emplace(next, Stretch{gap_end, {Engine::Compute, kNoCommand}, {}}).first;
    }
    Stretch& stretch = it->second;
    require(command, clock, stretch.writer, it->first);
    if (write) {
      for (Touch reader : stretch.readers) require(command, clock, reader, it->first);
      stretch.writer = me;
      stretch.readers.clear();
    } else {
      stretch.readers.push_back(me);
    }
    next = stretch.end;
  }
}

void HappensBefore::require(const Command& command, const Clock& clock, Touch before, std::int64_t offset) {
  if (before.id == kNoCommand || before.id == command.id || !violation_.empty()) return;
  const bool same_lane = before.lane == command.lane.index;
  if (same_lane || before.id <= clock[before.lane.place()]) return;
  violation_ = "commands " + std::to_string(before.id) + " (" + name_of(before.lane) + ") and " +
               std::to_string(command.id) + " (" + name_of(command.lane.index) + ": " +
               (command.op == kNone ? "copy of " + graph_.value_name(command.part.value) : graph_.op_name(command.op)) +
               ") touch offset " + std::to_string(offset) + " without an order";
}

}  // namespace tandem
