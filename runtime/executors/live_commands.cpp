// From a command to the work that a worker does: places become addresses here, on the submitting thread.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/machine/lanes.hpp"
#include "core/scenario/ranks.hpp"
#include "runtime/executors/live_executor.hpp"
#include "runtime/executors/workspace.hpp"

namespace tandem {
namespace {

constexpr int kPoisonByte = 0xFF;  // floats of it are NaN, indices are -1

void poison(std::byte* begin, std::int64_t bytes) {
  if (bytes > 0) std::memset(begin, kPoisonByte, static_cast<std::size_t>(bytes));
}

// What a copy at this rate would take; 0 without a limit.
std::chrono::nanoseconds held_for(std::int64_t bytes, double bytes_per_s) {
  constexpr double kNsPerS = 1e9;
  if (bytes_per_s <= 0) return {};
  return std::chrono::nanoseconds(std::llround(static_cast<double>(bytes) / bytes_per_s * kNsPerS));
}

}  // namespace

LiveExecutor::Work LiveExecutor::work_of(const Command& command) {
  CHECK(command.lane.rank == options_.rank, "command", command.id, "of rank", command.lane.rank);
  if (command.kind == CommandKind::Run) {
    if (waits_for_ranks(command.lane.kind())) return together_work(command);
    const bool updates = graph_.op(command.op).phase == Phase::OptimizerStep;
    return updates && options_.lost_peers ? update_work(command) : telling(command, run_work(command));
  }
  CHECK(command.source.rank == options_.rank && command.target.rank == options_.rank, "command", command.id,
        "copies between ranks, which CPU processes do not");
  const bool disk = command.source.tier == Tier::Disk || command.target.tier == Tier::Disk;
  return disk ? disk_copy_work(command) : copy_work(command);
}

LiveExecutor::Work LiveExecutor::copy_work(const Command& command) {
  const std::int64_t bytes = command.part.bytes;
  const std::byte* source = arena(command.source.tier).at(command.source.offset, bytes);
  std::byte* target = arena(command.target.tier).at(command.target.offset, bytes);
  const auto least = held_for(bytes, copy_limit(command.lane.kind()));
  return [=] {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(target, source, static_cast<std::size_t>(bytes));
    std::this_thread::sleep_until(start + least);
    return bytes;
  };
}

LiveExecutor::Work LiveExecutor::disk_copy_work(const Command& command) {
  const std::int64_t bytes = command.part.bytes;
  const bool read = command.source.tier == Tier::Disk;
  const Place disk = read ? command.source : command.target;
  const Place other = read ? command.target : command.source;
  CHECK(other.tier != Tier::Disk, "command", command.id, "copies within the disk tier");
  CHECK(disk.offset >= 0 && disk.offset + bytes <= options_.arena_bytes[static_cast<std::size_t>(Tier::Disk)],
        "command", command.id, "is outside the disk tier:", disk.offset, bytes);
  std::byte* memory = arena(other.tier).at(other.offset, bytes);
  DiskChannel* through = &channel(command.lane.kind());
  const auto least = held_for(bytes, copy_limit(command.lane.kind()));
  return [=] {
    const auto start = std::chrono::steady_clock::now();
    if (read)
      through->read(disk.offset, memory, bytes);
    else
      through->write(disk.offset, memory, bytes);
    std::this_thread::sleep_until(start + least);
    return bytes;
  };
}

std::int64_t LiveExecutor::operand_bytes(const Op& op, const Command& command, ValueId value) const {
  const std::int64_t bytes = graph_.value(value).bytes;
  if (!op.divisible || command.part.bytes == 0) return bytes;
  const std::int64_t lead_bytes = graph_.value(op.writes.front().value).bytes;
  return operand_range({command.part.first_byte, command.part.bytes}, lead_bytes, bytes).bytes;
}

std::vector<std::byte*> LiveExecutor::operands(const Command& command, std::size_t first, std::size_t count) const {
  const Op& op = graph_.op(command.op);
  const Arena& from = arena(command.operands_in());
  std::vector<std::byte*> addresses;
  for (std::size_t i = first; i < first + count; ++i) {
    const ValueId value = i < op.reads.size() ? op.reads[i] : op.writes[i - op.reads.size()].value;
    addresses.push_back(from.at(command.operands[i], operand_bytes(op, command, value)));
  }
  return addresses;
}

const BodyEntry& LiveExecutor::body_of(WorkId id) {
  const auto work = static_cast<std::size_t>(id);
  if (bodies_.size() <= work) bodies_.resize(work + 1, nullptr);
  if (bodies_[work] == nullptr) bodies_[work] = &options_.library.find_body(graph_.work(id));
  return *bodies_[work];
}

BodyCall LiveExecutor::body_call(const Command& command) const {
  const Op& op = graph_.op(command.op);
  CHECK(command.operands.size() == op.reads.size() + op.writes.size() + 1, "command", command.id, "has",
        command.operands.size(), "operands");
  const RankPlace place = place_of(scenario_, options_.rank);
  BodyCall call{.graph = graph_,
                .op = op,
                .work = graph_.work(op.work),
                .scenario = scenario_,
                .data = data_,
                .rank = place.data,
                .part = place.sequence,
                .elsewhere = command.lane.kind() == Engine::RemoteLoader,
                .reads = operands(command, 0, op.reads.size()),
                .writes = operands(command, op.reads.size(), op.writes.size()),
                .first_byte = command.part.first_byte,
                .bytes = command.part.bytes};
  if (call.bytes == 0 && !op.writes.empty()) call.bytes = graph_.value(op.writes.front().value).bytes;
  if (on_device(command.lane.kind())) {
    call.processor = Processor::Device;
    call.late_result = result_slot(command.id);
  }
  return call;
}

std::byte* LiveExecutor::workspace_of(const Command& command) const {
  const std::int64_t bytes = graph_.op(command.op).workspace_bytes;
  return bytes > 0 ? arena(command.operands_in()).at(command.operands.back(), bytes) : nullptr;
}

LiveExecutor::Work LiveExecutor::run_work(const Command& command) {
  return [this, body = body_of(graph_.op(command.op).work).body, call = body_call(command),
          workspace = workspace_of(command), command]() mutable { return run_body(body, call, command, workspace); };
}

// Of a copy that begins in pinned host memory and ends in what is not: the bytes up to there; else 0.
std::int64_t LiveExecutor::pinned_part(const Place& place, std::int64_t bytes) const {
  if (options_.pageable_bytes == 0 || place.tier != Tier::HostPinned) return 0;
  const std::int64_t pinned = arena(Tier::HostPinned).size_bytes() - options_.pageable_bytes;
  return place.offset < pinned && place.offset + bytes > pinned ? pinned - place.offset : 0;
}

// The device's share of a command: what its stream is handed, and where its result will be.
StreamTask LiveExecutor::stream_task(const Command& command) {
  StreamTask task{command.id, command.lane.index, command.wait_for, {}, {}};
  if (command.kind == CommandKind::Copy) {
    const std::int64_t bytes = command.part.bytes;
    std::byte* target = arena(command.target.tier).at(command.target.offset, bytes);
    const std::byte* source = arena(command.source.tier).at(command.source.offset, bytes);
    const std::int64_t least_ns = held_for(bytes, copy_limit(command.lane.kind())).count();
    // No copy may cross from pinned memory to other.
    const std::int64_t first = pinned_part(command.source, bytes) + pinned_part(command.target, bytes);
    task.enqueue = [=, lane = task.lane](Streams& streams) {
      if (first > 0) streams.copy(lane, target, source, first, 0);
      streams.copy(lane, target + first, source + first, bytes - first, least_ns);
    };
    task.result = [bytes] { return bytes; };
  } else if (waits_for_ranks(command.lane.kind())) {
    const auto bytes = std::make_shared<std::int64_t>(0);
    task.enqueue = [lane = task.lane, bytes, work = together_work(command)](Streams& streams) {
      streams.run(lane, [&] { *bytes = work(); });
    };
    task.result = [bytes] { return *bytes; };
  } else {
    task.enqueue = launch_of(command);
    task.result = late_result_of(command);
    tell_from_device(task, command);
  }
  if (!options_.before_command) return task;
  task.enqueue = [this, command, enqueue = std::move(task.enqueue)](Streams& streams) {
    options_.before_command(command);
    enqueue(streams);
  };
  return task;
}

// What an op leaves in its slot: a result, or of an update the mark of a number that is not finite.
std::function<std::int64_t()> LiveExecutor::late_result_of(const Command& command) {
  const Op& op = graph_.op(command.op);
  const bool updates = op.phase == Phase::OptimizerStep;
  if (!op.has_result && !updates) return {};
  std::int64_t* const slot = result_slot(command.id);
  if (!options_.library.requires_finite) return [slot, result = op.has_result] { return result ? *slot : 0; };
  if (updates) *slot = 0;  // no command in flight has it
  return [this, command, &op, updates, slot] {
    return updates ? require_finite(command, 0, not_finite_update(graph_, op, *slot))
                   : require_finite(command, *slot, not_finite_result(graph_, op, scenario_, *slot));
  };
}

// Ops of a training step that come again in the next find their operands in the same places more often than not, under
// policies that move little; to launch their kernels one by one may take the thread longer than the device runs them.
std::function<void(Streams&)> LiveExecutor::launch_of(const Command& command) {
  using Launch = RepeatedRuns::Launch;
  const LaneIndex lane = command.lane.index;
  const WorkId work_id = graph_.op(command.op).work;
  RepeatedRuns::Turn turn;
  if (body_of(work_id).repeatable) turn = repeated_runs_.next(work_id, command);
  if (turn.launch == Launch::Afresh)
    return [lane, work = run_work(command)](Streams& streams) { streams.run(lane, work); };
  return [this, lane, turn, work = run_work(command)](Streams& streams) {
    if (turn.launch == Launch::Recorded) {
      recordings_.resize(std::max(recordings_.size(), static_cast<std::size_t>(turn.slot) + 1));
      recordings_[static_cast<std::size_t>(turn.slot)] = {turn.recording, streams.record(lane, work)};
    }
    // The slot is another's where the command that was to be recorded has been cancelled.
    const auto slot = static_cast<std::size_t>(turn.slot);
    const bool there = slot < recordings_.size() && recordings_[slot].number == turn.recording;
    if (there && recordings_[slot].launches)
      recordings_[slot].launches->run();
    else
      streams.run(lane, work);
  };
}

std::int64_t LiveExecutor::run_body(Body body, BodyCall& call, const Command& command, std::byte* workspace) {
  if (options_.poison && call.processor == Processor::Host) poison(workspace, call.op.workspace_bytes);
  WorkspaceScope scope(workspace, call.op.workspace_bytes, call.processor);
  const auto name = [&] { return std::string(graph_.label(call.op.label)) + " (" + call.work.body + "): "; };
  std::int64_t result = 0;
  try {
    result = body(call);
  } catch (const NotFinite& error) {
    note_not_finite(command, error.what());
    throw;
  } catch (const std::bad_alloc&) {
    throw;  // there may be no memory for a text
  } catch (const std::exception& error) {
    throw DeviceError(name() + (options_.library.message_of ? options_.library.message_of(error) : error.what()));
  }
  record_peak(call, scope.peak_bytes(), scope.peak_live_bytes());
  if (scope.live_bytes() > 0)
    throw DeviceError(name() + "kept " + std::to_string(scope.live_bytes()) +
                      " bytes of its workspace after it returned");
  if (call.processor == Processor::Device || !options_.library.requires_finite) return result;
  std::string what = not_finite_result(graph_, call.op, scenario_, result);
  if (what.empty()) what = not_finite_writes(call);
  return require_finite(command, result, what);
}

// `what` is not finite, "" if all is. A command that makes such a number fails, and all that waits for it is cancelled:
// so the update that would take it in is never made.
std::int64_t LiveExecutor::require_finite(const Command& command, std::int64_t result, const std::string& what) {
  if (what.empty()) return result;
  note_not_finite(command, what);
  throw NotFinite(what);
}

void LiveExecutor::note_not_finite(const Command& command, const std::string& what) {
  const std::lock_guard lock(not_finite_mutex_);
  if (not_finite_ && not_finite_->command < command.id) return;
  const Op& op = graph_.op(command.op);
  not_finite_ = {command.id, op.step == kNone ? kNone : training_step(scenario_, op.step), op.phase, what};
}

void LiveExecutor::record_peak(const BodyCall& call, std::int64_t peak_bytes, std::int64_t peak_live_bytes) {
  const std::lock_guard lock(peaks_mutex_);
  const auto same = [&](const WorkspacePeak& p) {
    return p.declared_bytes == call.op.workspace_bytes && p.body == call.work.body;
  };
  auto peak = std::find_if(peaks_.begin(), peaks_.end(), same);
  if (peak == peaks_.end()) peak = peaks_.insert(peak, {call.work.body, call.op.workspace_bytes, 0, 0});
  peak->peak_bytes = std::max(peak->peak_bytes, peak_bytes);
  peak->peak_live_bytes = std::max(peak->peak_live_bytes, peak_live_bytes);
}

// With what a watchdog is told: it must take no command for lost that is only slow.
Task LiveExecutor::described(const Command& command, Work work) const {
  // No machine that anyone trains on is as slow, and no disk.
  constexpr double kFlopsPerS = 5e9, kBytesPerS = 10e6, kNsPerS = 1e9;
  Task task;
  task.id = command.id;
  task.lane = command.lane.index;
  if (command.kind == CommandKind::Run) task.cores = claimed_cores(scenario_.machine, command.lane.kind());
  task.wait_for = command.wait_for;
  task.work = std::move(work);
  double s = static_cast<double>(command.part.bytes) / kBytesPerS;
  if (command.kind == CommandKind::Run) {
    const Op& op = graph_.op(command.op);
    task.what = [this, id = command.op] { return graph_.op_name(id); };
    task.saves = op.phase == Phase::Save;
    for (const Kernel& kernel : graph_.work_of(op).kernels)
      s += static_cast<double>(kernel.flops) / kFlopsPerS + static_cast<double>(kernel.bytes) / kBytesPerS;
  } else {
    // Calibration copies bytes that no graph knows.
    const bool is_known = command.part.value >= 0 && command.part.value < graph_.value_count();
    const ValueId value = is_known ? command.part.value : kNone;
    task.what = [this, value, from = command.source.tier, to = command.target.tier] {
      return "copy of " + (value != kNone ? graph_.value_name(value) : std::string("bytes")) + " from " +
             std::string(name_of(from)) + " to " + std::string(name_of(to));
    };
    s += static_cast<double>(held_for(command.part.bytes, copy_limit(command.lane.kind())).count()) / kNsPerS;
  }
  task.allowance = std::chrono::nanoseconds(std::llround(s * kNsPerS));
  return task;
}

// The op that gives a checkpoint its name, as core/workloads/common has it: of no stage.
bool LiveExecutor::commits(const Command& command) const {
  if (command.kind != CommandKind::Run) return false;
  const Op& op = graph_.op(command.op);
  return op.phase == Phase::Save && op.layer == kNone;
}

void LiveExecutor::note_release(const Command& command) {
  if (command.source.tier == Tier::Disk || (command.source.tier == Tier::Device && options_.device)) return;
  std::byte* begin = arena(command.source.tier).at(command.source.offset, command.part.bytes);
  workers_->when_done(command.wait_for, [begin, bytes = command.part.bytes] { poison(begin, bytes); });
}

}  // namespace tandem
