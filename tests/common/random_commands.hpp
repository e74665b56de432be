// Random command streams, and the check that an executor kept their order: what every executor's tests share.
// Must not know which executor ran them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scheduler/seam.hpp"

namespace tandem::test {

struct RandomStreamOptions {
  std::uint64_t seed = 0;
  Rank ranks = 1;
  std::int32_t commands = 1000;  // a rank, releases among them
  std::vector<LaneIndex> run_lanes{Engine::Compute, Engine::CpuCompute, Engine::CpuOptimizer};
  std::vector<Engine> copy_lanes{Engine::H2D, Engine::D2H};
  std::int64_t copy_bytes = 1 << 16;   // the most; sizes are multiples of 64, 0 among them
  std::int64_t arena_bytes = 1 << 20;  // copies stay below this offset in each tier
  std::int64_t fixed_ns = 1000;        // the longest op, where the executor goes by the graph's Fixed kernels
  std::string body = "test.nothing";   // the body of all ops: no reads, no writes, no workspace
  std::int32_t window = 64;            // waits reach back at most this far
};

struct RandomStream {
  std::vector<Graph> graphs;                   // one a rank
  std::vector<std::vector<Command>> commands;  // by rank, ids 0, 1, ...
  std::vector<const Graph*> graph_pointers() const {
    std::vector<const Graph*> pointers;
    for (const Graph& graph : graphs) pointers.push_back(&graph);
    return pointers;
  }
};

namespace detail {

inline Place place_of(Rank rank, Engine lane, bool source, std::int64_t offset) {
  const auto tier = [&] {
    if (lane == Engine::DiskRead) return source ? Tier::Disk : Tier::HostPinned;
    if (lane == Engine::DiskWrite) return source ? Tier::HostPinned : Tier::Disk;
    const bool up = lane == Engine::H2D || lane == Engine::H2DSmall;
    return up == source ? Tier::HostPinned : Tier::Device;
  };
  return {rank, tier(), offset};
}

inline Op nothing_op(Graph& graph, const RandomStreamOptions& options, Engine engine, std::int64_t ns) {
  Kernel kernel;
  kernel.kind = KernelKind::Fixed;
  kernel.fixed_ns = ns;
  Op op;
  op.label = graph.intern("nothing");
  op.work = graph.add_work({options.body, DType::F32, {}, {kernel}});
  op.engine = engine;
  op.engines = engine_bit(engine);
  return op;
}

}  // namespace detail

// Each command waits for at most one earlier command of every other lane, drawn at random from the last `window` ones.
inline RandomStream random_stream(const RandomStreamOptions& options) {
  RandomStream stream;
  stream.graphs.resize(static_cast<std::size_t>(options.ranks));
  stream.commands.resize(static_cast<std::size_t>(options.ranks));
  for (Rank rank = 0; rank < options.ranks; ++rank) {
    // std::mt19937_64 is the same everywhere; the standard distributions are not, so draws are taken modulo.
    std::mt19937_64 random(options.seed * 1000003 + static_cast<std::uint64_t>(rank));
    const auto draw = [&](std::int64_t below) {
      return below <= 0 ? 0 : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
    };
    Graph& graph = stream.graphs[static_cast<std::size_t>(rank)];
    std::vector<Command>& commands = stream.commands[static_cast<std::size_t>(rank)];
    Tensor tensor;
    tensor.name = "anything";
    tensor.bytes = std::max<std::int64_t>(options.copy_bytes, 64);
    const ValueId value = graph.new_version(graph.add_tensor(tensor));
    const auto lane_count = options.run_lanes.size() + options.copy_lanes.size();
    for (CommandId id = 0; id < options.commands; ++id) {
      Command command;
      command.id = id;
      const auto pick = static_cast<std::size_t>(draw(static_cast<std::int64_t>(lane_count)));
      if (draw(16) == 0) {
        command.kind = CommandKind::Release;
        command.part = {value, 0, 64};
        command.source = {rank, Tier::Device, 0};
      } else if (pick < options.run_lanes.size()) {
        command.kind = CommandKind::Run;
        command.lane = {rank, options.run_lanes[pick]};
        command.op = graph.append(
            detail::nothing_op(graph, options, command.lane.kind(), draw(4) == 0 ? 0 : draw(options.fixed_ns + 1)));
        command.operands.push_back(-1);
      } else {
        command.kind = CommandKind::Copy;
        command.lane = {rank, options.copy_lanes[pick - options.run_lanes.size()]};
        const std::int64_t bytes = draw(options.copy_bytes / 64 + 1) * 64;
        command.part = {value, 0, bytes};
        command.source =
            detail::place_of(rank, command.lane.kind(), true, draw((options.arena_bytes - bytes) / 64 + 1) * 64);
        command.target =
            detail::place_of(rank, command.lane.kind(), false, draw((options.arena_bytes - bytes) / 64 + 1) * 64);
      }
      std::array<bool, kLaneCount> waited{};
      for (int tries = static_cast<int>(draw(4)); tries > 0 && id > 0; --tries) {
        const CommandId wait = id - 1 - draw(std::min<std::int64_t>(id, options.window));
        const Command& other = commands[static_cast<std::size_t>(wait)];
        bool& lane_waited = waited[other.lane.index.place()];
        if (other.kind == CommandKind::Release || other.lane == command.lane || lane_waited) continue;
        lane_waited = true;
        command.wait_for.push_back(wait);
      }
      commands.push_back(std::move(command));
    }
  }
  return stream;
}

// "" if every Run and Copy has exactly one event, starts after its lane's earlier command and all it waits for have
// finished, and finishes no earlier than it starts. Otherwise what is wrong first.
inline std::string order_violation(const RandomStream& stream, const std::vector<Event>& events) {
  std::map<std::pair<Rank, CommandId>, const Event*> by_id;
  std::ostringstream wrong;
  for (const Event& event : events)
    if (!by_id.emplace(std::pair(event.rank, event.command), &event).second) {
      wrong << "two events for command " << event.command << " of rank " << event.rank;
      return wrong.str();
    }
  for (const auto& commands : stream.commands) {
    std::array<const Event*, kLaneCount> last{};
    for (const Command& command : commands) {
      if (command.kind == CommandKind::Release) continue;
      const auto found = by_id.find({command.lane.rank, command.id});
      if (found == by_id.end()) {
        wrong << "no event for command " << command.id << " of rank " << command.lane.rank;
        return wrong.str();
      }
      const Event& event = *found->second;
      const auto after = [&](const Event* before, const char* why) {
        if (before == nullptr || before->finished <= event.started) return true;
        wrong << "command " << command.id << " of rank " << command.lane.rank << " started at " << event.started.ns
              << " ns, before command " << before->command << " finished at " << before->finished.ns << " ns (" << why
              << ')';
        return false;
      };
      const Event*& in_lane = last[command.lane.index.place()];
      if (!after(in_lane, "its lane's order")) return wrong.str();
      for (CommandId wait : command.wait_for)
        if (!after(by_id.at({command.lane.rank, wait}), "wait_for")) return wrong.str();
      if (event.finished < event.started) {
        wrong << "command " << command.id << " finished before it started";
        return wrong.str();
      }
      in_lane = &event;
    }
  }
  return "";
}

}  // namespace tandem::test
