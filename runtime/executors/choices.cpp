// What ops choose, told to who asks: all of it, where an event has the first alone.
#include <memory>
#include <utility>

#include "runtime/executors/live_executor.hpp"

namespace tandem {

bool LiveExecutor::is_told(const Op& op) const {
  return options_.chosen && op.has_result && !op.writes.empty() &&
         graph_.tensor_of(op.writes.front().value).type == DType::I64;
}

namespace {

std::span<const std::int64_t> tokens_at(const std::byte* begin, std::int64_t bytes) {
  return {reinterpret_cast<const std::int64_t*>(begin), static_cast<std::size_t>(bytes) / sizeof(std::int64_t)};
}

}  // namespace

// In the host's memory, which is the op's until its event.
LiveExecutor::Work LiveExecutor::telling(const Command& command, Work work) const {
  const Op& op = graph_.op(command.op);
  if (!is_told(op)) return work;
  return
      [this, step = op.step, micro_batch = op.micro_batch, work = std::move(work),
       written = operands(command, op.reads.size(), 1).front(), bytes = graph_.value(op.writes.front().value).bytes] {
        const std::int64_t result = work();
        options_.chosen(step, micro_batch, tokens_at(written, bytes));
        return result;
      };
}

// Behind its kernels in their stream: what follows there may take the place.
void LiveExecutor::tell_from_device(StreamTask& task, const Command& command) {
  const Op& op = graph_.op(command.op);
  if (!is_told(op)) return;
  const auto slot = std::make_shared<std::byte*>(nullptr);
  const std::int64_t bytes = graph_.value(op.writes.front().value).bytes;
  task.enqueue = [this, slot, bytes, lane = task.lane, enqueue = std::move(task.enqueue),
                  written = operands(command, op.reads.size(), 1).front()](Streams& streams) {
    enqueue(streams);
    *slot = choice_slots_.at(choices_++ % kChoiceSlots * bytes, bytes);
    streams.copy(lane, *slot, written, bytes, /*least_ns=*/0);
  };
  task.result = [this, slot, bytes, step = op.step, micro_batch = op.micro_batch, result = std::move(task.result)] {
    options_.chosen(step, micro_batch, tokens_at(*slot, bytes));
    return result();
  };
}

}  // namespace tandem
