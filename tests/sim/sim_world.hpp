// A small machine of round numbers built in code, and short ways to write commands: what the simulator's tests share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "sim/simgrid_executor.hpp"

namespace tandem::testing {

inline constexpr std::int64_t kGB = 1'000'000'000;
inline constexpr std::int64_t kMs = 1'000'000;

// 10 GB/s each way, no latency, no shared limits: tests add what they are about.
inline HardwareProfile round_machine() {
  HardwareProfile machine;
  machine.name = "round";
  machine.h2d.bytes_per_s = machine.d2h.bytes_per_s = 10e9;
  machine.peer.bytes_per_s = 10e9;
  machine.disk_read.bytes_per_s = machine.disk_write.bytes_per_s = 1e9;
  machine.peak_flops[DType::F32] = 1e12;
  machine.cpu_flops = 1e11;
  machine.loader_bytes_per_s = 1e9;
  machine.collective_bytes_per_s = 10e9;
  return machine;
}

inline double& memory_rate(HardwareProfile& machine, Tier tier) {
  return machine.tiers[static_cast<std::size_t>(tier)].bytes_per_s;
}

// A simulated machine and the commands of its ranks, submitted in the order in which they are written.
class SimWorld {
 public:
  static constexpr const char* kBody = "test.nothing";  // of all ops

  explicit SimWorld(HardwareProfile machine, Fidelity fidelity = Fidelity::Alone, Rank ranks = 1, Truth factors = {},
                    std::uint64_t seed = 0)
      : machine_(std::move(machine)),
        factors_(factors),
        graphs_(static_cast<std::size_t>(ranks)),
        next_(graphs_.size()) {
    std::vector<const Graph*> pointers;
    for (const Graph& graph : graphs_) pointers.push_back(&graph);
    executor_ = std::make_unique<SimgridExecutor>(pointers, machine_, factors_, seed, fidelity);
  }

  CommandId copy(Engine lane, std::int64_t bytes, const std::vector<CommandId>& waits = {}, Rank rank = 0) {
    Command command = base(CommandKind::Copy, lane, waits, rank);
    command.part = {0, 0, bytes};
    return submit(command);
  }
  // To the device, from there on in the host's memory.
  CommandId copy_from(std::int64_t offset, std::int64_t bytes) {
    Command command = base(CommandKind::Copy, Engine::H2D, {}, 0);
    command.part = {0, 0, bytes};
    command.source = {0, Tier::HostPinned, offset};
    return submit(command);
  }
  // An op of a fixed time that moves `bytes` through its memory meanwhile.
  CommandId run(LaneIndex lane, std::int64_t ns, const std::vector<CommandId>& waits = {}, Rank rank = 0,
                std::int64_t bytes = 0) {
    Command command = base(CommandKind::Run, lane, waits, rank);
    Kernel kernel;
    kernel.kind = KernelKind::Fixed;
    kernel.fixed_ns = ns;
    kernel.bytes = bytes;
    command.op = append(rank, kernel);
    return submit(command);
  }
  // An all-reduce of all ranks.
  CommandId collective(std::int32_t sequence, std::int64_t bytes, const std::vector<CommandId>& waits, Rank rank) {
    std::vector<Rank> all;
    for (Rank each = 0; each < static_cast<Rank>(graphs_.size()); ++each) all.push_back(each);
    return together(kBody, 0, all, {Engine::Collective}, sequence, 2 * bytes, waits, rank);
  }
  // What ranks do together, of a body that goes by `counted` bytes.
  CommandId together(const char* body, std::int32_t group, const std::vector<Rank>& members, LaneIndex lane,
                     std::int32_t sequence, std::int64_t counted, const std::vector<CommandId>& waits, Rank rank) {
    Command command = base(CommandKind::Run, lane, waits, rank);
    Kernel kernel;
    kernel.bytes = counted;
    const auto ranks = static_cast<std::int64_t>(members.size());
    command.op = append(rank, kernel, {counted, ranks}, body);
    graphs_[static_cast<std::size_t>(rank)].add_group(group, members);
    command.match = {group, sequence};
    return submit(command);
  }

  EventBatch wait(TimeNs deadline = kNever) {
    EventBatch batch = executor_->wait(deadline);
    events_.insert(events_.end(), batch.events.begin(), batch.events.end());
    return batch;
  }
  // Waits for all that is in flight.
  const std::vector<Event>& drain() {
    while (executor_->in_flight()) wait();
    return events_;
  }
  const Event& event(CommandId id, Rank rank = 0) const {
    for (const Event& event : events_)
      if (event.command == id && event.rank == rank) return event;
    ADD_FAILURE() << "no event for command " << id << " of rank " << rank;
    static const Event kNoEvent;
    return kNoEvent;
  }
  std::int64_t started(CommandId id, Rank rank = 0) const { return event(id, rank).started.ns; }
  std::int64_t finished(CommandId id, Rank rank = 0) const { return event(id, rank).finished.ns; }
  SimgridExecutor& executor() { return *executor_; }

 private:
  Command base(CommandKind kind, LaneIndex lane, const std::vector<CommandId>& waits, Rank rank) {
    Command command;
    command.id = next_[static_cast<std::size_t>(rank)]++;
    command.kind = kind;
    command.lane = {rank, lane};
    command.wait_for.assign(waits.begin(), waits.end());
    return command;
  }
  OpId append(Rank rank, const Kernel& kernel, std::vector<std::int64_t> sizes = {}, const char* body = kBody) {
    Graph& graph = graphs_[static_cast<std::size_t>(rank)];
    Op op;
    op.label = graph.intern("op");
    op.work = graph.add_work({body, DType::F32, std::move(sizes), {kernel}});
    op.engines = engine_bit(op.engine);
    return graph.append(op);
  }
  CommandId submit(const Command& command) {
    executor_->submit({&command, 1});
    return command.id;
  }

  HardwareProfile machine_;
  Truth factors_;
  std::vector<Graph> graphs_;
  std::vector<CommandId> next_;
  std::unique_ptr<SimgridExecutor> executor_;
  std::vector<Event> events_;
};

}  // namespace tandem::testing
