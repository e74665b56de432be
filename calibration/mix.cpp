#include "calibration/mix.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace tandem {

Mix::Mix(Workbench& bench, const CopyDesign& copies)
    : bench_(bench), copies_(copies), optimizer_(largest_update(bench)) {
  const Graph& graph = bench.graph();
  const std::int64_t half = copies.scratch_bytes / 2;
  ranges_[Engine::CpuOptimizer] = {0, graph.value(graph.op(optimizer_).writes.front().value).bytes};
  ranges_[Engine::H2D] = {bench.scratch_offset(), half};
  ranges_[Engine::D2H] = {bench.scratch_offset() + half, half};
}

void Mix::add(Engine lane, double ns) {
  double& round_ns = round_ns_[lane];
  if (round_ns == 0) {
    add_round(lane);
    bench_.execute();  // page faults
    add_round(lane);
    for (const Event& event : bench_.execute().events) round_ns += duration_ns(event);
  }
  for (double added = 0; added < ns && round_ns > 0; added += round_ns) add_round(lane);
}

Workbench::Turn Mix::execute() {
  bool kernels = false;
  for (const Command& command : bench_.commands()) kernels = kernels || command.lane.kind() == Engine::Compute;
  Workbench::Turn turn = bench_.execute();
  const auto took_ns = static_cast<double>(turn.last_seen.ns - turn.before_submit.ns);
  if (kernels) std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(copies_.rest * took_ns)));
  return turn;
}

void Mix::add_round(Engine lane) {
  if (lane == Engine::Compute) {
    for (const OpId id : bench_.ops()) bench_.add_run(id, lane);
  } else if (lane == Engine::CpuOptimizer) {
    bench_.add_run(optimizer_, lane, next(lane));
  } else {
    const ByteRange bytes = next(lane);
    bench_.add_copy(lane, bytes.first, bytes.bytes);
  }
}

ByteRange Mix::next(Engine lane) {
  const ByteRange range = ranges_[lane];
  const std::int64_t bytes = std::min(range.bytes, copies_.bucket_bytes);
  std::int64_t& at = at_[lane];
  if (at + bytes > range.bytes) at = 0;
  return {range.first + std::exchange(at, at + bytes), bytes};
}

Busy all_busy(const Workbench::Turn& turn, const std::vector<Command>& commands) {
  std::map<Engine, std::pair<TimeNs, TimeNs>> lanes;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const Event& event = turn.events[i];
    auto& [start, end] = lanes.try_emplace(commands[i].lane.kind(), event.started, event.finished).first->second;
    start = std::min(start, event.started);
    end = std::max(end, event.finished);
  }
  Busy busy{lanes.begin()->second.first, lanes.begin()->second.second};
  for (const auto& [lane, span] : lanes) busy = {std::max(busy.from, span.first), std::min(busy.to, span.second)};
  return busy;
}

std::map<std::string, std::vector<double>> times_beside(Workbench& bench, const Workbench::Turn& turn, Engine lane,
                                                        const std::vector<Command>& commands) {
  const Busy busy = all_busy(turn, commands);
  std::map<std::string, std::vector<double>> times;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const Command& command = commands[i];
    if (command.lane.kind() != lane || !busy.holds(turn.events[i])) continue;
    const std::string kind =
        command.kind == CommandKind::Copy ? "copy" : std::to_string(bench.graph().op(command.op).work);
    times[kind].push_back(duration_ns(turn.events[i]));
  }
  return times;
}

}  // namespace tandem
