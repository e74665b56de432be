// The live executor: one rank of a run, with arenas, worker threads, and a device, or worker threads that stand in for
// one.
// Decides nothing: lanes, order, places and waits are those of the commands. Must not know policies or the scheduler.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scheduler/repeated_runs.hpp"
#include "core/scheduler/seam.hpp"
#include "runtime/executors/arena.hpp"
#include "runtime/executors/body.hpp"
#include "runtime/executors/collective.hpp"
#include "runtime/executors/core_teams.hpp"
#include "runtime/executors/device.hpp"
#include "runtime/executors/disk_file.hpp"
#include "runtime/executors/lane_workers.hpp"
#include "runtime/executors/lost_peers.hpp"
#include "runtime/executors/not_finite.hpp"
#include "runtime/executors/stream_lanes.hpp"

namespace tandem {

struct LiveExecutorOptions {
  Rank rank = 0;
  std::array<std::int64_t, kTierCount> arena_bytes{};  // 0: the run has no such tier
  std::int64_t pageable_bytes = 0;                     // of the host's arena, at its end: not pinned
  bool lock_host = false;                              // keep the host arena in memory, as pinned memory would be
  std::string scratch_directory = ".";                 // of the disk tier's file
  int device_threads = 1;                              // intra-operator threads of the compute worker
  int cpu_threads = 1;                                 // and of each CPU worker; all that run share them
  std::array<double, kEngineCount>
      copy_bytes_per_s{};                  // slows the copies of a lane down to this; 0: as fast as they go
  std::shared_ptr<Collective> collective;  // runs of several ranks
  // Null: a lost rank fails the command that needs it. Else an update whose gradient has not come changes nothing.
  std::shared_ptr<LostPeers> lost_peers;
  bool poison = false;  // fills freed bytes and fresh workspaces with 0xFF (NaN), so that a use after free shows
  std::atomic<bool>* interrupt = nullptr;  // set by a signal handler; outlives the executor
  BodyLibrary library;
  std::shared_ptr<Device> device;  // null: worker threads and host memory stand in
  // Called with all that an op has chosen, of its step and micro-batch: by workers, for a micro-batch in the order of
  // steps. Null: nobody asks.
  std::function<void(std::int32_t step, std::int32_t micro_batch, std::span<const std::int64_t> tokens)> chosen;
  // Called by a lane's worker before each command: tests delay or fail there. Null: nothing.
  std::function<void(const Command&)> before_command;
  // As of DiskOptions, for tests.
  std::function<std::int32_t(std::int64_t call, std::int32_t result)> disk_fault;
  // Called by the loader's worker before a checkpoint gets its name, with the step of the graph. Null: nothing.
  std::function<void(std::int32_t)> before_commit;
};

// More than a lane of a device has commands under way.
inline constexpr std::int64_t kChoiceSlots = 32;

// What the bodies of one name needed, for checking the workspaces that ops declare.
struct WorkspacePeak {
  std::string body;
  std::int64_t declared_bytes = 0, peak_bytes = 0, peak_live_bytes = 0;
};

class LiveExecutor final : public Executor {
 public:
  // `graph`, `scenario` and `data` outlive the executor; the graph may grow between submits. Throws DeviceError when an
  // arena, the scratch file or the other ranks cannot be had.
  LiveExecutor(const Graph& graph, const Scenario& scenario, const DataSource& data, LiveExecutorOptions options);

  void submit(std::span<const Command> commands) override;
  EventBatch wait(TimeNs deadline) override { return workers_->wait(deadline); }
  bool in_flight() const override { return workers_->in_flight(); }

  // May be called from a signal handler.
  void request_interrupt() { workers_->request_interrupt(); }
  // From which share of repeated launches on they are recorded (RepeatedRuns): calibration times an op both ways.
  void record_from(double share) { repeated_runs_.record_from(share); }
  // Copies bytes out of an arena. Only while nothing is in flight.
  void read(Place place, std::byte* target, std::int64_t bytes);
  // Largest needs by body and declared size so far. Only while nothing is in flight.
  std::vector<WorkspacePeak> workspace_peaks() const;
  // What was not finite first, which failed its command; none if all was. Only while nothing is in flight.
  std::optional<FirstNotFinite> not_finite() const;
  // How long it took to pin the host arena; 0 without a device.
  double pinning_s() const { return pinning_s_; }
  // What of a device's pinned memory is far from the cores (NearMemory).
  std::int64_t far_host_bytes() const { return options_.device ? options_.device->far_bytes() : 0; }
  // What differs from the intended set-up on this machine, for people; "" if nothing does.
  std::string note() const { return note_; }
  // As of LaneWorkers.
  std::optional<Standstill> standstill() const { return workers_->standstill(); }

 private:
  using Work = std::function<std::int64_t()>;
  Work work_of(const Command& command);
  Work run_work(const Command& command);
  Work update_work(const Command& command);
  Work together_work(const Command& command);
  Work collective_work(const Command& command);
  Work adding_shift_work(const Command& command);
  Work gather_work(const Command& command);
  Work transfer_work(const Command& command);
  Work copy_work(const Command& command);
  Work disk_copy_work(const Command& command);
  void note_release(const Command& command);
  Task described(const Command& command, Work work) const;
  bool commits(const Command& command) const;
  std::vector<std::byte*> operands(const Command& command, std::size_t first, std::size_t count) const;
  double copy_limit(Engine lane) const { return options_.copy_bytes_per_s[static_cast<std::size_t>(lane)]; }
  std::int64_t operand_bytes(const Op& op, const Command& command, ValueId value) const;
  std::int64_t run_body(Body body, BodyCall& call, const Command& command, std::byte* workspace);
  std::int64_t require_finite(const Command& command, std::int64_t result, const std::string& what);
  void note_not_finite(const Command& command, const std::string& what);
  std::function<std::int64_t()> late_result_of(const Command& command);
  bool is_told(const Op& op) const;
  Work telling(const Command& command, Work work) const;
  void tell_from_device(StreamTask& task, const Command& command);
  void record_peak(const BodyCall& call, std::int64_t peak_bytes, std::int64_t peak_live_bytes);
  void prepare_thread(LaneIndex lane) const;
  void make_arenas();
  bool on_device(Engine engine) const { return stream_lanes_ != nullptr && stream_lanes_->takes(engine); }
  std::int64_t pinned_part(const Place& place, std::int64_t bytes) const;
  StreamTask stream_task(const Command& command);
  BodyCall body_call(const Command& command) const;
  std::byte* workspace_of(const Command& command) const;
  const BodyEntry& body_of(WorkId work);
  std::function<void(Streams&)> launch_of(const Command& command);
  std::int64_t* result_slot(CommandId id) const;
  const Arena& arena(Tier tier) const { return arenas_[static_cast<std::size_t>(tier)]; }
  DiskChannel& channel(Engine engine);

  const Graph& graph_;
  const Scenario& scenario_;
  const DataSource& data_;
  const LiveExecutorOptions options_;
  std::array<Arena, kTierCount> arenas_;
  const CoreTeams teams_;
  Arena result_slots_;  // of commands on the device
  Arena choice_slots_;  // and of all that they choose, by turns
  std::int64_t choices_ = 0;
  double pinning_s_ = 0;
  std::unique_ptr<DiskFile> disk_;  // from the first command on that needs it
  std::string note_;
  std::array<std::unique_ptr<DiskChannel>, kEngineCount> channels_;
  std::vector<const BodyEntry*> bodies_;  // by work id; null until first used
  struct Kept {
    std::int64_t number = -1;
    std::unique_ptr<Recording> launches;  // null: the device could not
  };
  RepeatedRuns repeated_runs_;    // the submitting thread's
  std::vector<Kept> recordings_;  // by RepeatedRuns' slot; the streams' thread's
  mutable std::mutex peaks_mutex_;
  std::vector<WorkspacePeak> peaks_;
  mutable std::mutex not_finite_mutex_;
  std::optional<FirstNotFinite> not_finite_;
  // Last: its workers use all of the above.
  std::unique_ptr<LaneWorkers> workers_;
  std::unique_ptr<StreamLanes> stream_lanes_;  // null without a device
};

}  // namespace tandem
