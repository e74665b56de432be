// All that is derived from a record, once, for every report: times, stalls, traffic, losses, throughput and bounds.
// Must not know formats or worlds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/generated.hpp"
#include "analysis/holder.hpp"
#include "analysis/interval.hpp"
#include "analysis/lower_bound.hpp"
#include "analysis/measured_share.hpp"
#include "analysis/memory.hpp"
#include "analysis/path_parts.hpp"
#include "analysis/pipeline_stages.hpp"
#include "analysis/roofline.hpp"
#include "analysis/stalls.hpp"
#include "analysis/steps.hpp"
#include "analysis/timeline.hpp"

namespace tandem {

struct LaneReport {
  Rank rank = 0;
  LaneIndex lane;
  LaneUse use;
};

// Of all steps, where the time line and what is derived from it (stalls, bounds, traffic a step) may be of the first.
struct WholeRun {
  std::vector<std::int64_t> times_ns;  // as of Steps
  std::int64_t steps = 0;              // completed
  std::int64_t head_ns = 0, tail_ns = 0, makespan_ns = 0;
  std::int64_t commands = 0;  // Run and Copy, finished or not
};

struct Validation {
  std::int64_t step = 0;  // training steps done by then, from the training's start
  double loss = 0;
};

struct Analysis {
  const RunRecord* record = nullptr;
  Timeline timeline;
  Steps steps;
  WholeRun run;
  std::vector<LaneReport> lanes;  // those that ran a command, by rank and place; bytes and commands of the whole run
  Spread step_s;
  std::optional<Interval> step_interval;    // 90%, of a simulated run's median step
  MeasuredShare measured;                   // of a simulated run's computing
  double mean_step_s = 0;                   // makespan over steps
  double steady_step_s = 0;                 // mean of the step times: what lower bounds stand beside
  double compute_s = 0;                     // a step, mean over ranks: the compute lane is busy
  std::map<std::string, double> exposed_s;  // a step, mean over ranks: the compute lane waits, by cause
  Holder holder;                            // of the step, from the two above
  std::vector<PathPart> path;               // what the steps' critical path consists of
  std::vector<StageShare> stages;           // of a pipeline
  Roofline roofline;
  std::int64_t parameters = 0;             // of the model
  std::int64_t trained_parameters = 0;     // of those; the others are frozen
  std::int64_t compressed_parameters = 0;  // of the frozen ones: kept as codes
  double samples_per_s = 0, tokens_per_s = 0, model_flops_per_s = 0;
  std::optional<Generated> generated;
  double flop_use = 0;  // model_flops_per_s over the devices' peak in the workload's precision; 0: not known
  std::vector<std::pair<std::string, std::int64_t>> peak_bytes;     // device0..., host, host_pinned, disk
  std::vector<std::pair<std::string, std::int64_t>> evicted_bytes;  // RankRecord's by tier, of all ranks; where any
  double checkpoint_s = 0;                                          // the loader lanes save, over the whole run
  // Measured runs only. Norms are those of gradients before clipping.
  std::vector<double> loss, gradient_norm;
  std::vector<Validation> validation_loss;
  std::int64_t skipped_steps = 0;    // that changed nothing, as a gradient was not finite
  std::optional<double> loss_scale;  // fp16: after the last step
  LowerBound bound;
};

// The record and what it points to must outlive the result.
Analysis analyse(const RunRecord& record);

// Samples and tokens of one training step (of one decoding step: one token a sequence), over all ranks.
// Of what denoises, a step is a part of each sample.
double samples_per_step(const WorkloadOptions& workload);
double tokens_per_step(const WorkloadOptions& workload);

}  // namespace tandem
