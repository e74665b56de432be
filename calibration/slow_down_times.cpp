#include <algorithm>
#include <map>
#include <utility>

#include "calibration/lane_times.hpp"

namespace tandem {
namespace {

constexpr int kRounds = 9, kQuickRounds = 3;

// Keeps lanes busy: each lane has work of about the same length, in commands of one lane's kind, as runs have them, of
// a bucket's size. They go round so much memory that no cache holds it: most of what a run copies is optimizer states,
// which nothing reads for a step.
class Mix {
 public:
  Mix(Workbench& bench, const CopyDesign& copies) : bench_(bench), copies_(copies), optimizer_(largest_update(bench)) {
    const Graph& graph = bench.graph();
    const std::int64_t half = copies.scratch_bytes / 2;
    ranges_[Engine::CpuOptimizer] = {0, graph.value(graph.op(optimizer_).writes.front().value).bytes};
    ranges_[Engine::H2D] = {bench.scratch_offset(), half};
    ranges_[Engine::D2H] = {bench.scratch_offset() + half, half};
  }

  // Adds about `ns` of work to the lane, by what one round of it takes (measured at the first call).
  void add(Engine lane, double ns) {
    double& round_ns = round_ns_[lane];
    if (round_ns == 0) {
      add_round(lane);
      bench_.execute();  // page faults
      add_round(lane);
      for (const Event& event : bench_.execute().events) round_ns += duration_ns(event);
    }
    for (double added = 0; added < ns && round_ns > 0; added += round_ns) add_round(lane);
  }

 private:
  void add_round(Engine lane) {
    if (lane == Engine::Compute) {
      for (const OpId id : bench_.ops()) bench_.add_run(id, lane);
    } else if (lane == Engine::CpuOptimizer) {
      bench_.add_run(optimizer_, lane, next(lane));
    } else {
      const ByteRange bytes = next(lane);
      bench_.add_copy(lane, bytes.first, bytes.bytes);
    }
  }
  // The next bytes of the lane's range, a bucket's or all.
  ByteRange next(Engine lane) {
    const ByteRange range = ranges_[lane];
    const std::int64_t bytes = std::min(range.bytes, copies_.bucket_bytes);
    std::int64_t& at = at_[lane];
    if (at + bytes > range.bytes) at = 0;
    return {range.first + std::exchange(at, at + bytes), bytes};
  }

  Workbench& bench_;
  CopyDesign copies_;
  OpId optimizer_;
  std::map<Engine, ByteRange> ranges_;  // of copies, of the arenas; of the optimizer's first write
  std::map<Engine, double> round_ns_;
  std::map<Engine, std::int64_t> at_;
};

// Time of each of the lane's commands by its place in the lane's round, while all lanes were busy.
std::map<std::string, std::vector<double>> times_beside(Workbench& bench, const Workbench::Turn& turn, Engine lane,
                                                        const std::vector<Command>& commands) {
  std::map<Engine, std::int64_t> end;
  for (std::size_t i = 0; i < commands.size(); ++i)
    end[commands[i].lane.engine] = std::max(end[commands[i].lane.engine], turn.events[i].finished.ns);
  std::int64_t first_end = end.begin()->second;
  for (const auto& [engine, ns] : end) first_end = std::min(first_end, ns);
  std::map<std::string, std::vector<double>> times;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const Command& command = commands[i];
    if (command.lane.engine != lane || turn.events[i].finished.ns > first_end) continue;
    const std::string kind =
        command.kind == CommandKind::Copy ? "copy" : std::to_string(bench.graph().op(command.op).work);
    times[kind].push_back(duration_ns(turn.events[i]));
  }
  return times;
}

// Weighs each kind of command by the time that it takes alone.
double ratio(const std::map<std::string, std::vector<double>>& beside,
             const std::map<std::string, std::vector<double>>& alone) {
  double beside_ns = 0, alone_ns = 0;
  for (const auto& [kind, ns] : beside) {
    const auto found = alone.find(kind);
    if (found == alone.end()) continue;
    double sum = 0;
    for (const double one : ns) sum += one;
    beside_ns += sum;
    alone_ns += quantile(found->second, 0.5) * static_cast<double>(ns.size());
  }
  return alone_ns > 0 ? beside_ns / alone_ns : 1;
}

}  // namespace

std::vector<SlowDown> time_slow_downs(Workbench& bench, const CopyDesign& design, bool quick) {
  constexpr double kRoundNs = 60e6;
  const std::vector<std::vector<Engine>> groups = {
      {Engine::Compute, Engine::H2D},
      {Engine::Compute, Engine::D2H},
      {Engine::Compute, Engine::CpuOptimizer},
      {Engine::CpuOptimizer, Engine::H2D},
      {Engine::CpuOptimizer, Engine::D2H},
      {Engine::H2D, Engine::D2H},
      {Engine::CpuOptimizer, Engine::H2D, Engine::D2H},
      {Engine::Compute, Engine::H2D, Engine::D2H},
      {Engine::Compute, Engine::CpuOptimizer, Engine::H2D},
      {Engine::Compute, Engine::CpuOptimizer, Engine::H2D, Engine::D2H},
  };
  Mix mix(bench, design);
  std::map<Engine, std::map<std::string, std::vector<double>>> alone;
  std::map<std::pair<std::size_t, Engine>, std::vector<double>> factors;
  // Rounds go over all groups, so that a noisy moment touches each of them a little and none of them much.
  for (int round = 0; round < (quick ? kQuickRounds : kRounds); ++round) {
    for (const Engine lane : {Engine::Compute, Engine::H2D, Engine::D2H, Engine::CpuOptimizer}) {
      mix.add(lane, kRoundNs);
      const std::vector<Command> commands = bench.commands();
      for (auto& [kind, ns] : times_beside(bench, bench.execute(), lane, commands))
        alone[lane][kind].insert(alone[lane][kind].end(), ns.begin(), ns.end());
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const Engine lane : groups[g]) mix.add(lane, kRoundNs);
      const std::vector<Command> commands = bench.commands();
      const Workbench::Turn turn = bench.execute();
      for (const Engine lane : groups[g])
        factors[{g, lane}].push_back(ratio(times_beside(bench, turn, lane, commands), alone[lane]));
    }
  }
  std::vector<SlowDown> out;
  for (const auto& [key, samples] : factors) {
    SlowDown slow{key.second, groups[key.first], summarize(samples), quantile(samples, design.own_quantile)};
    std::erase(slow.others, key.second);
    out.push_back(std::move(slow));
  }
  return out;
}

}  // namespace tandem
