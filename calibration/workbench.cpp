#include "calibration/workbench.hpp"

#include <algorithm>
#include <utility>

#include "calibration/noise_data.hpp"
#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/transforms/one_bit.hpp"
#include "runtime/executors/workspace.hpp"

namespace tandem {
namespace {

// A text's tokens are bytes.
std::int64_t tokens_of(const WorkloadOptions& workload) {
  constexpr std::int64_t kBytes = 256;
  return std::min(workload.keys.integer_or("vocabulary", kBytes), kBytes);
}

std::int64_t round_up(std::int64_t bytes, std::int64_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

std::int32_t Workbench::steps_of(const Rewrites& rewrites) {
  const OneBitUpdate* one_bit = one_bit_of(rewrites);
  return one_bit != nullptr ? static_cast<std::int32_t>(one_bit->warmup_steps) + 2 : 1;
}

Workbench::Workbench(const Scenario& scenario, std::int64_t scratch_bytes, BenchDevice device, const Rewrites& rewrites,
                     bool updates_on_host, std::int64_t pageable_bytes)
    : updates_on_host_(updates_on_host),
      scenario_(scenario),
      data_(make_noise_data(scenario.seed, tokens_of(scenario.workload))),
      alignment_(device.device ? kDeviceAlignment : kHostAlignment),
      pageable_bytes_(pageable_bytes) {
  scenario_.steps = steps_of(rewrites);
  const WorkloadEntry* family = find_workload(scenario_.workload.family);
  CHECK(family != nullptr, "no workload family", scenario_.workload.family);
  const std::unique_ptr<StepSource> source = family->make(scenario_, rewrites);
  source->prologue(graph_);
  const OpId first = graph_.op_count();
  for (std::int32_t step = 0; step < scenario_.steps; ++step)
    CHECK(source->append_step(graph_, step), "a step of", scenario_.workload.family);
  for (OpId id = 0; id < graph_.op_count(); ++id) {
    if (graph_.op(id).phase != Phase::Load)
      ops_.push_back(id);
    else
      (id < first ? loads_ : batch_loads_).push_back(id);
  }
  place(scratch_bytes);
  LiveExecutorOptions options;
  options.arena_bytes[static_cast<std::size_t>(Tier::Device)] = device_bytes_;
  options.arena_bytes[static_cast<std::size_t>(Tier::HostPinned)] = host_bytes_;
  options.pageable_bytes = pageable_bytes_;
  options.cpu_threads = cpu_threads(scenario_.machine.cores);
  options.library = device.library();
  options.library.requires_finite = false;  // an op is timed many times over on the same numbers
  options.device = std::move(device.device);
  executor_ = std::make_unique<LiveExecutor>(graph_, scenario_, *data_, options);
  load();
}

bool Workbench::runs_on_host(const Op& op) const {
  return op.may_run_on(Engine::Loader) || (updates_on_host_ && op.may_run_on(Engine::CpuOptimizer)) ||
         op.may_run_on(Engine::CpuCompute);
}

// Operands of ops that can run on the host. A value has the place of the one whose storage it takes over.
std::vector<bool> Workbench::values_on_host() const {
  std::vector<bool> on_host(static_cast<std::size_t>(graph_.value_count()), false);
  const auto at = [&](ValueId value) { return on_host[static_cast<std::size_t>(value)]; };
  for (OpId id = graph_.op_count() - 1; id >= 0; --id) {
    const Op& op = graph_.op(id);
    const bool host = runs_on_host(op);
    for (const ValueId read : op.reads)
      if (host) on_host[static_cast<std::size_t>(read)] = true;
    for (const Write& write : op.writes) {
      if (host) on_host[static_cast<std::size_t>(write.value)] = true;
      if (write.reuses != kNone && at(write.value)) on_host[static_cast<std::size_t>(write.reuses)] = true;
    }
  }
  return on_host;
}

// What the host needs comes first: a GPU's host arena is pinned, which takes time, and ends behind the scratch.
void Workbench::place(std::int64_t scratch_bytes) {
  const auto take = [&](std::int64_t bytes) {
    return std::exchange(device_bytes_, device_bytes_ + round_up(bytes, alignment_));
  };
  const std::vector<bool> on_host = values_on_host();
  offsets_.assign(static_cast<std::size_t>(graph_.value_count()), -1);
  workspaces_.assign(static_cast<std::size_t>(graph_.op_count()), -1);
  for (const bool host : {true, false}) {
    std::int64_t workspace_bytes = 0;
    for (OpId id = 0; id < graph_.op_count(); ++id) {
      for (const Write& write : graph_.op(id).writes)
        if (write.reuses == kNone && on_host[static_cast<std::size_t>(write.value)] == host)
          offsets_[static_cast<std::size_t>(write.value)] = take(graph_.value(write.value).bytes);
      if (runs_on_host(graph_.op(id)) == host)
        workspace_bytes = std::max(workspace_bytes, graph_.op(id).workspace_bytes);
    }
    // One workspace serves all, as a pool would hand out the same bytes again: they stay in the caches.
    const std::int64_t workspace = take(workspace_bytes);
    for (OpId id = 0; id < graph_.op_count(); ++id)
      if (runs_on_host(graph_.op(id)) == host) workspaces_[static_cast<std::size_t>(id)] = workspace;
    if (!host) break;
    scratch_ = round_up(device_bytes_, kPageBytes);  // as direct I/O wants
    host_bytes_ = device_bytes_ = round_up(scratch_ + scratch_bytes, kPageBytes) + pageable_bytes_;
  }
  for (OpId id = 0; id < graph_.op_count(); ++id)
    for (const Write& write : graph_.op(id).writes)
      if (write.reuses != kNone) offsets_[static_cast<std::size_t>(write.value)] = offset(write.reuses);
}

void Workbench::load() {
  double bytes = 0, ns = 0;
  for (const auto& loads : {loads_, batch_loads_})
    for (const OpId id : loads) {
      const CommandId loaded = add_run(id, Engine::Loader);
      for (const Write& write : graph_.op(id).writes) {
        bytes += static_cast<double>(graph_.value(write.value).bytes);
        add_copy(Engine::H2D, offset(write.value), graph_.value(write.value).bytes, loaded);
      }
    }
  const std::vector<Command> commands = commands_;
  const Turn turn = execute();
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (commands[i].lane.kind() == Engine::Loader)
      ns += static_cast<double>(turn.events[i].finished.ns - turn.events[i].started.ns);
  load_bytes_per_s_ = bytes / std::max(1.0, ns) * 1e9;
}

Command& Workbench::add(CommandKind kind, Engine engine) {
  Command& command = commands_.emplace_back();
  command.id = next_id_++;
  command.kind = kind;
  command.lane = {0, engine};
  return command;
}

CommandId Workbench::add_run(OpId id, Engine engine, ByteRange part) {
  const Op& op = graph_.op(id);
  CHECK(op.may_run_on(engine), graph_.op_name(id), "on", name_of(engine));
  const ValueId lead = op.writes.empty() ? kNone : op.writes.front().value;
  const std::int64_t lead_bytes = lead == kNone ? 0 : graph_.value(lead).bytes;
  if (part.bytes == 0) part = {0, lead_bytes};
  CHECK(op.divisible || part.bytes == lead_bytes, graph_.op_name(id), "in parts");
  Command& command = add(CommandKind::Run, engine);
  command.op = id;
  command.part = {lead, part.first, part.bytes};
  const auto operand = [&](ValueId value) {
    const std::int64_t skipped = op.divisible ? operand_range(part, lead_bytes, graph_.value(value).bytes).first : 0;
    command.operands.push_back(offset(value) + skipped);
  };
  for (const ValueId read : op.reads) operand(read);
  for (const Write& write : op.writes) operand(write.value);
  command.operands.push_back(op.workspace_bytes > 0 ? workspaces_[static_cast<std::size_t>(id)] : -1);
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

OpId largest_update(const Workbench& bench) {
  const auto elements = [&](OpId op) { return bench.graph().work_of(bench.graph().op(op)).sizes.at(0); };
  OpId largest = kNone;
  for (const OpId id : bench.ops())
    if (bench.graph().op(id).may_run_on(Engine::CpuOptimizer))
      if (largest == kNone || elements(id) > elements(largest)) largest = id;
  CHECK(largest != kNone, "no optimizer to time");
  return largest;
}

}  // namespace tandem
