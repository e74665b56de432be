// A real run put together: workload, policy, the scheduler of this process's rank and the LibTorch executor on the CPU.
// What a program, a test or a calibration needs to train a scenario. Must not know flags or reports' files.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run_log.hpp"
#include "analysis/skipped_steps.hpp"
#include "core/base/errors.hpp"
#include "core/machine/cost_model.hpp"
#include "core/scheduler/added_inputs.hpp"
#include "core/scheduler/scheduler.hpp"
#include "runtime/data.hpp"
#include "runtime/executors/live_executor.hpp"
#include "runtime/executors/watchdog.hpp"

namespace tandem {

struct TrainOptions {
  Rank rank = 0;             // below rank_count() of the scenario
  std::string meeting_file;  // runs of several ranks: see GlooOptions
  std::string scratch_directory = default_scratch_directory();
  std::atomic<bool>* interrupt = nullptr;  // set to end the run early; outlives it
  bool poison = false;                     // see LiveExecutorOptions
  std::shared_ptr<Device> device;          // null: the CPU stands in
  // Where batches come from; null: from what the scenario names (open_data).
  std::function<std::unique_ptr<DataSource>()> open_data;
  BodyLibrary library;                  // none: LibTorch's; tests have bodies of it that go wrong
  Watchdog* watchdog = nullptr;         // looks at all that the training waits for; outlives it. Null: nobody
  std::function<void()> look_at_peers;  // called while other ranks are waited for at the start; may throw
  // Called from a lane's thread where this rank goes on without another (spared_workers), with the training step in
  // which that was lost, from 0. Null: no rank does.
  std::function<void(Rank lost, std::int32_t step)> lost_worker;
  std::function<void(std::int32_t)> before_commit;  // see LiveExecutorOptions
  // Tests put what goes wrong between the executor and what it works with: its device, ranks, disk and commands.
  std::function<void(LiveExecutorOptions&)> decorate;

  // $TANDEM_SCRATCH, else $TMPDIR, else /var/tmp, which unlike /tmp is on a disk.
  static std::string default_scratch_directory();
};

// A run that ended because a number of it was not finite: `what()` says in which training step, and what.
class NotFiniteError : public DeviceError {
 public:
  NotFiniteError(const Scenario& scenario, const FirstNotFinite& first);
  // As another rank told it.
  NotFiniteError(std::int32_t step, bool from_update, const std::string& text)
      : DeviceError(text), step_(step), from_update_(from_update) {}
  // The training step, counted from 1; 0: before the first.
  std::int32_t step() const { return step_; }
  // A finite gradient came to a parameter that is not: what the step began with was fine.
  bool from_update() const { return from_update_; }

 private:
  std::int32_t step_;
  bool from_update_;
};

// Owns all that its record points to. The scenario must outlive it.
class Training {
 public:
  // Opens the data and waits for the other ranks. Throws ConfigError for a policy, workload or data that cannot be
  // made, DeviceError for memory, a scratch file or a peer that cannot be had.
  explicit Training(const Scenario& scenario, const TrainOptions& options = {});
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // Runs to the end, once, or until an interrupt has drained, or has saved the state after a whole step. All that
  // crosses the seam goes to log() and to `watcher`, if there is one. Throws DoesNotFit, NotFiniteError, and
  // DeviceError if a command failed or there was no memory.
  void run(EventLog* watcher = nullptr, MoreInputs more = nullptr);

  bool interrupted() const { return scheduler_->interrupted(); }
  bool stopped() const { return scheduler_->stopped(); }
  const Scheduler& scheduler() const { return *scheduler_; }
  const Graph& graph() const { return scheduler_->graph(); }
  const MemoryLog& log() const { return log_->kept(); }
  const LiveExecutor& executor() const { return *executor_; }
  const DataSource& data() const { return *data_; }
  // As of RunRecord::loss_scale_before.
  std::optional<LossScaleState> loss_scale_before() const { return loss_scale_before_; }
  RunRecord record() const;

  // The bytes of a tensor's latest version, wherever they are. CHECKs that the run is over and the value is whole.
  std::vector<std::byte> latest(TensorId tensor);
  // All parameters in fp32 (the masters of 16-bit ones) by full field name: "block0.qkv.weight". Where ranks have parts
  // of them, those elements of each field that this rank has. `wanted`: the fields that are; null: all.
  std::map<std::string, std::vector<float>> parameters(const std::function<bool(const std::string&)>& wanted = nullptr);

 private:
  std::vector<float> masters(TensorId parameter);
  void drive_to_end(EventLog* watcher, MoreInputs more);

  Scenario scenario_;  // on a device, within the memory that is free there
  Watchdog* watchdog_;
  CostModel estimate_;
  std::optional<LossScaleState> loss_scale_before_;
  std::unique_ptr<DataSource> data_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<LiveExecutor> executor_;
  std::unique_ptr<RunLog> log_;
};

}  // namespace tandem
