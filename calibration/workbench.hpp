// One training step of a workload, or as many as an update needs until it repeats itself, placed once on a real
// executor, whose ops and copies can be run at will: alone, again and again, or beside each other. Takes threads,
// allocator and bodies from the runtime, so that what is measured is what a run pays. Must not know policies, nor what
// the times are for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "core/scheduler/seam.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/data.hpp"
#include "runtime/executors/live_executor.hpp"
#include "runtime/torch_setup.hpp"

namespace tandem {

inline double duration_ns(const Event& event) { return static_cast<double>(event.finished.ns - event.started.ns); }

// Who runs the compute lane and copies.
struct BenchDevice {
  std::shared_ptr<Device> device;  // null: worker threads stand in
  BodyLibrary (*library)() = &torch_library;
};

class Workbench {
 public:
  // Places all values of these steps in the device's arena, and those that the host needs (loads, and the optimizer's
  // operands if `updates_on_host`) at the same offsets of the host's; `scratch_bytes` behind them in both, and behind
  // those `pageable_bytes` more, of which the host's are not pinned. Loads parameters and batches into both. Throws as
  // LiveExecutor does.
  Workbench(const Scenario& scenario, std::int64_t scratch_bytes, BenchDevice device = {},
            const Rewrites& rewrites = {}, bool updates_on_host = true, std::int64_t pageable_bytes = 0);

  // One; where momentum travels by signs, those of plain Adam before, and another after the first of its own.
  static std::int32_t steps_of(const Rewrites& rewrites);
  // Intra-operator threads of the CPU lanes' workers where runs have so many cores: the device's stand-in takes one.
  static std::int32_t cpu_threads(std::int32_t cores) { return cores > 1 ? cores - 1 : 1; }

  const Graph& graph() const { return graph_; }
  const std::vector<OpId>& ops() const { return ops_; }  // of the steps, loads left out, in graph order
  std::int64_t scratch_offset() const { return scratch_; }
  std::int64_t pageable_offset() const { return host_bytes_ - pageable_bytes_; }
  // Rate at which the loader made initial values and batches.
  double load_bytes_per_s() const { return load_bytes_per_s_; }
  // Host memory that was pinned, and how long that took; 0 without a device.
  std::int64_t pinned_bytes() const { return executor_->pinning_s() > 0 ? pageable_offset() : 0; }
  double pinning_s() const { return executor_->pinning_s(); }
  std::int64_t offset(ValueId value) const { return offsets_[static_cast<std::size_t>(value)]; }

  // Commands to be run next; they wait for nothing but their lane, unless told to. Returns the command's id. `part`: of
  // a divisible op's first write; no bytes: all of it.
  CommandId add_run(OpId op, Engine engine, ByteRange part = {});
  CommandId add_copy(Engine lane, std::int64_t offset, std::int64_t bytes, CommandId wait_for = kNoCommand);
  const std::vector<Command>& commands() const { return commands_; }  // added and not yet run

  struct Turn {
    TimeNs before_submit;       // on the clock of the events
    TimeNs submitted;           // when submit() had returned
    TimeNs last_seen;           // when the last event was handed over
    std::vector<Event> events;  // by id
  };
  // Whether launches that come again are recorded from now on, at once: else none is.
  void record_launches(bool record) { executor_->record_from(record ? 0 : 2); }
  // Submits what was added and waits until all of it is done. Throws DeviceError if a command fails.
  Turn execute();

 private:
  bool runs_on_host(const Op& op) const;
  std::vector<bool> values_on_host() const;
  void place(std::int64_t scratch_bytes);
  void load();
  Command& add(CommandKind kind, Engine engine);
  static void collect(EventBatch batch, Turn& turn);

  bool updates_on_host_;
  Scenario scenario_;
  std::unique_ptr<DataSource> data_;
  Graph graph_;
  std::vector<OpId> ops_, batch_loads_, loads_;
  std::vector<std::int64_t> offsets_;     // by value
  std::vector<std::int64_t> workspaces_;  // by op
  std::int64_t alignment_;                // of values
  std::int64_t scratch_ = 0, pageable_bytes_ = 0, host_bytes_ = 0, device_bytes_ = 0;
  double load_bytes_per_s_ = 0;
  std::unique_ptr<LiveExecutor> executor_;
  std::vector<Command> commands_;
  CommandId next_id_ = 0;
};

// The op that updates most parameters. CHECKs that there is one.
OpId largest_update(const Workbench& bench);

}  // namespace tandem
