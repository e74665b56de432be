// A finished run, simulated or measured, as the reports read it: the same struct for both worlds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/adaptation.hpp"
#include "analysis/skipped_steps.hpp"
#include "core/graph/graph.hpp"
#include "core/scenario/scenario.hpp"
#include "core/scheduler/event_log.hpp"

namespace tandem {

class RunTotals;

struct RankRecord {
  const Graph* graph = nullptr;
  std::array<std::int64_t, kTierCount> peak_bytes{};     // most bytes charged by the scheduler's pools, by tier
  std::array<std::int64_t, kTierCount> evicted_bytes{};  // what went down a tier to make room, by the tier it went to
};

struct RunRecord {
  std::string mode;  // "simulated" | "measured"
  const Scenario* scenario = nullptr;
  std::vector<RankRecord> ranks;
  // Of a run of more ranks than are told of (told_ranks.hpp): which ones `ranks` are, in order, and how many commands
  // the others had. Empty: all of the run.
  std::vector<Rank> told;
  std::int64_t commands_of_others = 0;
  // What crossed the seam. Everything else (step times, busy shares, stalls by cause, bytes moved, memory over time by
  // role, losses) is derived from it. Live with several ranks: this rank's part.
  const MemoryLog* log = nullptr;
  // Of a long run, whose log is that of its first steps: what all of it came to. Null: the log is whole.
  const RunTotals* totals = nullptr;
  // False: copies and work on the CPU did not slow each other (a fidelity of the simulator), so bounds leave DRAM out.
  bool memory_shared = true;
  // fp16: the loss scale that the first step found. Unknown where a resumed run is read back from its log.
  std::optional<LossScaleState> loss_scale_before;
  std::vector<AdaptDecision> adaptation;  // of a run that adapts, in order
  double wall_s = 0;                      // simulated: how long the simulator took
  double pinning_s = 0;                   // measured on a device: how long pinning host memory took, before the run
  std::string other_machine;              // measured: how the machine is none that the profile is of; "": it is that
  std::int64_t far_host_bytes = 0;        // measured on a device: pinned memory on another socket than the cores
};

}  // namespace tandem
