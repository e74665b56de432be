#include "calibration/workbench.hpp"

#include <algorithm>
#include <utility>

#include "calibration/noise_data.hpp"
#include "core/scenario/errors.hpp"
#include "core/scheduler/check.hpp"
#include "runtime/torch_setup.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kPageBytes = 4096;  // scratch begins at one, as direct I/O wants

// A text's tokens are bytes.
std::int64_t tokens_of(const WorkloadOptions& workload) {
  constexpr std::int64_t kBytes = 256;
  return workload.vocabulary > 0 ? std::min(workload.vocabulary, kBytes) : kBytes;
}

std::int64_t round_up(std::int64_t bytes, std::int64_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

Workbench::Workbench(const Scenario& scenario, std::int64_t scratch_bytes)
    : scenario_(scenario), data_(make_noise_data(scenario.seed, tokens_of(scenario.workload))) {
  scenario_.steps = 1;
  const WorkloadEntry* family = find_workload(scenario_.workload.family);
  CHECK(family != nullptr, "no workload family", scenario_.workload.family);
  const std::unique_ptr<StepSource> source = family->make(scenario_, GraphRequest{});
  source->prologue(graph_);
  const OpId first = graph_.op_count();
  CHECK(source->append_step(graph_, 0), "a step of", scenario_.workload.family);
  for (OpId id = 0; id < graph_.op_count(); ++id) {
    if (graph_.op(id).phase != Phase::Load)
      ops_.push_back(id);
    else
      (id < first ? loads_ : batch_loads_).push_back(id);
  }
  place();
  scratch_ = round_up(arena_bytes_, kPageBytes);
  arena_bytes_ = scratch_ + scratch_bytes;
  LiveExecutorOptions options;
  options.arena_bytes[static_cast<std::size_t>(Tier::Device)] = arena_bytes_;
  options.arena_bytes[static_cast<std::size_t>(Tier::HostPinned)] = arena_bytes_;
  options.cpu_threads = cpu_threads(scenario_.machine.cores);
  options.library = torch_library();
  executor_ = std::make_unique<LiveExecutor>(graph_, scenario_, *data_, options);
  load();
}

void Workbench::place() {
  constexpr std::int64_t kAlignment = 64;  // as core's pools give
  const auto take = [&](std::int64_t bytes) {
    return std::exchange(arena_bytes_, arena_bytes_ + round_up(bytes, kAlignment));
  };
  offsets_.assign(static_cast<std::size_t>(graph_.value_count()), -1);
  std::int64_t workspace_bytes = 0;
  for (OpId id = 0; id < graph_.op_count(); ++id) {
    for (const Write& write : graph_.op(id).writes)
      offsets_[static_cast<std::size_t>(write.value)] =
          write.reuses != kNone ? offset(write.reuses) : take(graph_.value(write.value).bytes);
    workspace_bytes = std::max(workspace_bytes, graph_.op(id).workspace_bytes);
  }
  // One workspace serves all, as a pool would hand out the same bytes again: they stay in the caches.
  workspaces_.assign(static_cast<std::size_t>(graph_.op_count()), take(workspace_bytes));
}

void Workbench::load() {
  for (const auto& loads : {loads_, batch_loads_})
    for (const OpId id : loads) {
      const CommandId loaded = add_run(id, Engine::Loader);
      for (const Write& write : graph_.op(id).writes)
        add_copy(Engine::H2D, offset(write.value), graph_.value(write.value).bytes, loaded);
    }
  execute();
}

Command& Workbench::add(CommandKind kind, Engine engine) {
  Command& command = commands_.emplace_back();
  command.id = next_id_++;
  command.kind = kind;
  command.lane = {0, engine};
  return command;
}

CommandId Workbench::add_run(OpId id, Engine engine) {
  const Op& op = graph_.op(id);
  CHECK(op.may_run_on(engine), graph_.op_name(id), "on", name_of(engine));
  Command& command = add(CommandKind::Run, engine);
  command.op = id;
  for (const ValueId read : op.reads) command.operands.push_back(offset(read));
  for (const Write& write : op.writes) command.operands.push_back(offset(write.value));
  command.operands.push_back(op.workspace_bytes > 0 ? workspaces_[static_cast<std::size_t>(id)] : -1);
  if (!op.writes.empty()) {
    const ValueId lead = op.writes.front().value;
    command.part = {lead, 0, graph_.value(lead).bytes};
  }
  return command.id;
}

CommandId Workbench::add_copy(Engine lane, std::int64_t offset, std::int64_t bytes, CommandId wait_for) {
  Command& command = add(CommandKind::Copy, lane);
  const bool up = lane == Engine::H2D || lane == Engine::H2DSmall;
  command.part = {0, 0, bytes};
  command.source = {0, up ? Tier::HostPinned : Tier::Device, offset};
  command.target = {0, up ? Tier::Device : Tier::HostPinned, offset};
  if (wait_for != kNoCommand) command.wait_for.push_back(wait_for);
  return command.id;
}

void Workbench::collect(EventBatch batch, Turn& turn) {
  turn.last_seen = batch.observed;
  for (Event& event : batch.events) {
    if (event.outcome != Outcome::Finished) throw DeviceError("calibration: a command failed: " + event.error);
    turn.events.push_back(std::move(event));
  }
}

Workbench::Turn Workbench::execute() {
  Turn turn;
  turn.before_submit = executor_->wait(TimeNs{}).observed;
  executor_->submit(commands_);
  commands_.clear();
  collect(executor_->wait(turn.before_submit), turn);  // does not block: the deadline has passed
  turn.submitted = turn.last_seen;
  while (executor_->in_flight()) collect(executor_->wait(kNever), turn);
  std::sort(turn.events.begin(), turn.events.end(),
            [](const Event& a, const Event& b) { return a.command < b.command; });
  return turn;
}

}  // namespace tandem
