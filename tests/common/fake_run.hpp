// Small hand-made runs with known times, for tests of analyses and reports.
#pragma once

#include <bit>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/record.hpp"

namespace tandem::testing {

// One rank. Ops and commands are added in order; every command is answered at the times that the test gives.
class FakeRun {
 public:
  FakeRun() {
    scenario.path = "fake.yaml";
    scenario.machine.name = "fake";
    scenario.policy.name = "by_hand";
    scenario.workload.family = "layers";
    scenario.machine.small_copy_bytes = 0;
  }

  TensorId tensor(const std::string& name, Role role, std::int64_t bytes, bool persistent = false) {
    Tensor t;
    t.name = name;
    t.role = role;
    t.bytes = bytes;
    t.persistent = persistent;
    return graph.add_tensor(t);
  }

  // An op that takes `ns` on every engine; reads and writes are values, and a write makes a new version of a tensor.
  OpId op(const std::string& label, Phase phase, Engine engine, std::int32_t step, const std::vector<ValueId>& reads,
          const std::vector<TensorId>& writes, std::int64_t ns = 0, std::uint16_t more_engines = 0,
          bool has_result = false, std::int64_t workspace_bytes = 0) {
    Work work;
    work.body = label;
    Kernel kernel;
    kernel.kind = KernelKind::Fixed;
    kernel.fixed_ns = ns;
    work.kernels.push_back(kernel);
    Op o;
    o.label = graph.intern(label);
    o.work = graph.add_work(work);
    o.phase = phase;
    o.engine = engine;
    o.engines = engine_bit(engine) | more_engines;
    o.step = step;
    o.has_result = has_result;
    o.workspace_bytes = workspace_bytes;
    for (ValueId read : reads) o.reads.push_back(read);
    for (TensorId write : writes) o.writes.push_back({graph.new_version(write), kNone});
    return graph.append(std::move(o));
  }
  ValueId made_by(OpId id, std::size_t write = 0) const { return graph.op(id).writes[write].value; }

  // Everything issued from here on is issued at `ns`.
  void turn(std::int64_t ns) {
    EventBatch batch;
    batch.observed = {ns};
    entries.push_back({batch, {}});
  }
  CommandId run(OpId op, Engine engine, const std::vector<CommandId>& waits, std::int64_t from, std::int64_t to,
                double result = 0, const std::vector<std::int64_t>& operands = {}) {
    Command& command = add(CommandKind::Run, waits);
    command.lane.index = engine;
    command.op = op;
    for (std::int64_t operand : operands) command.operands.push_back(operand);
    return done(command.id, from, to, result);
  }
  CommandId copy(ValueId value, Engine engine, const std::vector<CommandId>& waits, std::int64_t from, std::int64_t to,
                 std::int64_t source = 0, std::int64_t target = 0) {
    Command& command = add(CommandKind::Copy, waits);
    command.lane.index = engine;
    command.part = {value, 0, graph.value(value).bytes};
    const bool up = engine == Engine::H2D || engine == Engine::H2DSmall;
    command.source = {0, up ? Tier::HostPinned : Tier::Device, source};
    command.target = {0, up ? Tier::Device : Tier::HostPinned, target};
    return done(command.id, from, to, 0);
  }
  void release(ValueId value, Tier tier, std::int64_t offset, const std::vector<CommandId>& waits) {
    Command& command = add(CommandKind::Release, waits);
    command.part = {value, 0, graph.value(value).bytes};
    command.source = {0, tier, offset};
  }

  // The events reach the scheduler in a last turn, unless the test has put them into earlier ones.
  RunRecord record(const std::string& mode = "simulated") {
    log = {};
    for (const MemoryLog::Entry& entry : entries) {
      log.append(entry.batch);
      log.append(entry.commands);
    }
    EventBatch last;
    for (const Event& event : events) last.observed = std::max(last.observed, event.finished);
    last.events = events;
    log.append(last);
    RunRecord made;
    made.mode = mode;
    made.scenario = &scenario;
    made.ranks.push_back({&graph, {}});
    made.log = &log;
    return made;
  }
  // The event of `id` is part of the batch of the current turn.
  void seen_now(CommandId id) {
    for (std::size_t i = 0; i < events.size(); ++i)
      if (events[i].command == id) {
        entries.back().batch.events.push_back(events[i]);
        events.erase(events.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
  }

  Scenario scenario;
  Graph graph;
  std::vector<MemoryLog::Entry> entries;
  std::vector<Event> events;
  MemoryLog log;

 private:
  Command& add(CommandKind kind, const std::vector<CommandId>& waits) {
    if (entries.empty()) turn(0);
    Command& command = entries.back().commands.emplace_back();
    command.id = next_++;
    command.kind = kind;
    for (CommandId id : waits) command.wait_for.push_back(id);
    return command;
  }
  CommandId done(CommandId id, std::int64_t from, std::int64_t to, double result) {
    Event event;
    event.command = id;
    event.started = {from};
    event.finished = {to};
    event.result = std::bit_cast<std::int64_t>(result);
    events.push_back(event);
    return id;
  }
  CommandId next_ = 0;
};

// Two training steps of one layer, times in ns:
//   loader  |0 parameter 10|
//   h2d                    |10 p0 40|          |100 p1 130|
//   compute                         |40 f0 60|60 b0 70|   |130 f1 150|150 b1 160|
//   d2h                                            |70 g0 80|              |160 g1 170|
//   cpu_optimizer                                         |80 u0 100|            |170 u1 190|
struct TwoSteps : FakeRun {
  explicit TwoSteps(std::int64_t bytes = 1000) {
    // The copies' times above are those of the machine: 1,000 bytes in 30 ns up and in 10 ns down.
    scenario.machine.h2d.bytes_per_s = 1e12 / 30;
    scenario.machine.d2h.bytes_per_s = 1e12 / 10;
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 1 << 20;
    scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 1 << 20;
    const TensorId p = tensor("p", Role::Parameter, bytes, true), g = tensor("g", Role::Gradient, bytes),
                   a = tensor("a", Role::Activation, 500);
    const OpId load = op("load", Phase::Load, Engine::Loader, kNone, {}, {p}, 10);
    ValueId parameter = made_by(load);
    CommandId before = run(load, Engine::Loader, {}, 0, 10, 0, {0});
    for (std::int32_t step = 0; step < 2; ++step) {
      const std::int64_t t = std::int64_t{step} * 90;
      const OpId f = op("forward", Phase::Forward, Engine::Compute, step, {parameter}, {a}, 20, 0, true);
      const OpId b = op("backward", Phase::Backward, Engine::Compute, step, {parameter, made_by(f)}, {g}, 10);
      const OpId u = op("update", Phase::OptimizerStep, Engine::CpuOptimizer, step, {made_by(b), parameter}, {p}, 20);
      const CommandId up = copy(parameter, Engine::H2D, {before}, 10 + t, 40 + t, 0, 0);
      run(f, Engine::Compute, {up}, 40 + t, 60 + t, 3.0 - step, {0, 2048});
      const CommandId backward = run(b, Engine::Compute, {}, 60 + t, 70 + t, 0, {0, 2048, 4096});
      release(made_by(f), Tier::Device, 2048, {backward});
      const CommandId down = copy(made_by(b), Engine::D2H, {backward}, 70 + t, 80 + t, 4096, 8192);
      before = run(u, Engine::CpuOptimizer, {down}, 80 + t, 100 + t, 0, {8192, 0, 0});
      parameter = made_by(u);
    }
  }
};

// Each cause of time is uncertain by so much.
inline std::map<TimeCause, Uncertainty> all_causes(double relative) {
  std::map<TimeCause, Uncertainty> all;
  for (int i = 0; i < kTimeCauseCount; ++i) all[static_cast<TimeCause>(i)] = {relative, "a test"};
  return all;
}

}  // namespace tandem::testing
