#include "core/scheduler/contents.hpp"

#include "core/base/check.hpp"

namespace tandem {

void Contents::append(const EventBatch& batch) {
  if (next_) next_->append(batch);
}

void Contents::append(std::span<const Command> commands) {
  if (next_) next_->append(commands);
  for (const Command& command : commands)
    if (command.lane.rank == rank_) check(command);
}

// The version whose bytes these are: one that was taken over has those of the one before.
ValueId Contents::source_of(ValueId value) const {
  for (;;) {
    const OpId producer = graph_.value(value).producer;
    if (producer == kNone || !is_taken_over(graph_.op(producer))) return value;
    for (const Write& write : graph_.op(producer).writes)
      if (write.value == value) {
        value = write.reuses;
        break;
      }
  }
}

void Contents::check(const Command& command) {
  const Part& part = command.part;
  if (command.kind == CommandKind::Copy) {
    read(command, command.source.tier, command.source.offset, part.value, {part.first_byte, part.bytes});
    write(command.target.tier, command.target.offset, part.bytes,
          {source_of(part.value), command.target.offset - part.first_byte});
  } else if (command.kind == CommandKind::Run) {
    const Op& op = graph_.op(command.op);
    CHECK(command.operands.size() == op.reads.size() + op.writes.size() + 1, graph_.op_name(command.op));
    const Tier tier = command.operands_in();
    const std::int64_t lead_bytes = op.writes.empty() ? 0 : graph_.value(op.writes.front().value).bytes;
    const ByteRange lead = op.divisible ? ByteRange{part.first_byte, part.bytes} : ByteRange{0, lead_bytes};
    std::size_t i = 0;
    for (ValueId value : op.reads)
      read(command, tier, command.operands[i++], value, operand_range(lead, lead_bytes, graph_.value(value).bytes));
    if (op.workspace_bytes > 0) write(tier, command.operands.back(), op.workspace_bytes, {});
    for (const Write& written : op.writes) {
      const ByteRange range = operand_range(lead, lead_bytes, graph_.value(written.value).bytes);
      write(tier, command.operands[i], range.bytes, {written.value, command.operands[i] - range.first});
      ++i;
    }
  }
}

void Contents::read(const Command& command, Tier tier, std::int64_t offset, ValueId value, ByteRange range) {
  if (!violation_.empty()) return;
  const Content wanted{source_of(value), offset - range.first};
  std::int64_t next = offset;  // all before it is as wanted
  const auto& memory = memories_[static_cast<std::size_t>(tier)];
  const auto window = boost::icl::interval<std::int64_t>::right_open(offset, offset + range.bytes);
  const auto [first, last] = memory.equal_range(window);
  for (auto it = first; it != last && it->first.lower() <= next && it->second == wanted; ++it) next = it->first.upper();
  if (next >= offset + range.bytes) return;
  violation_ = "command " + std::to_string(command.id) + " (" +
               (command.op == kNone ? std::string("copy") : graph_.op_name(command.op)) + ") expects " +
               graph_.value_name(value) + " at offset " + std::to_string(next) + " of " + std::string(name_of(tier)) +
               ", which holds something else";
}

void Contents::write(Tier tier, std::int64_t offset, std::int64_t bytes, Content content) {
  memories_[static_cast<std::size_t>(tier)].set(
      {boost::icl::interval<std::int64_t>::right_open(offset, offset + bytes), content});
}

}  // namespace tandem
