#include "analysis/analysis.hpp"

#include <algorithm>
#include <array>

#include "analysis/resources.hpp"
#include "analysis/run_totals.hpp"
#include "core/scenario/capacity.hpp"
#include "core/scenario/ranks.hpp"
#include "core/scenario/schedule.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

std::int64_t devices_of(const RunRecord& record) {
  return std::max<std::int64_t>(static_cast<std::int64_t>(record.ranks.size()), device_count(*record.scenario));
}

// The causes that users look for are there even where they are zero.
bool always_told(Cause cause) {
  return cause == Cause::H2D || cause == Cause::D2H || cause == Cause::CpuOptimizer || cause == Cause::Disk ||
         cause == Cause::Dispatch;
}

void add_lanes(Analysis& analysis) {
  double compute_ns = 0;
  CauseNs idle_ns{};
  for (const RankTimeline& rank : analysis.timeline.ranks) {
    const auto uses = lane_uses(rank, analysis.steps.windows);
    for (std::size_t place = 0; place < uses.size(); ++place)
      if (uses[place].commands > 0) analysis.lanes.push_back({rank.rank, LaneIndex::at(place), uses[place]});
    const LaneUse& compute = uses[static_cast<std::size_t>(Engine::Compute)];
    compute_ns += static_cast<double>(compute.busy_ns);
    for (std::size_t cause = 0; cause < kCauseCount; ++cause) idle_ns[cause] += compute.idle_ns[cause];
  }
  const double times = static_cast<double>(analysis.steps.window_steps()) *
                       static_cast<double>(std::max<std::size_t>(1, analysis.timeline.ranks.size())) * 1e9;
  analysis.compute_s = compute_ns / times;
  for (int cause = 0; cause < kCauseCount; ++cause) {
    const auto ns = static_cast<double>(idle_ns[static_cast<std::size_t>(cause)]);
    if (ns != 0 || always_told(static_cast<Cause>(cause)))
      analysis.exposed_s[std::string(name_of(static_cast<Cause>(cause)))] = ns / times;
  }
}

void add_throughput(Analysis& analysis) {
  analysis.generated =
      generated(*analysis.record->scenario, analysis.timeline, analysis.run.head_ns, analysis.run.times_ns);
  if (analysis.step_s.median <= 0) return;
  const RunRecord& record = *analysis.record;
  const double per_step = 1 / analysis.step_s.median;
  analysis.samples_per_s = samples_per_step(record.scenario->workload) * per_step;
  analysis.tokens_per_s = tokens_per_step(record.scenario->workload) * per_step;
  // A process of a run of several knows its own part, which all others equal.
  const double parts = static_cast<double>(devices_of(record)) / static_cast<double>(record.ranks.size());
  analysis.model_flops_per_s = model_flops_per_step(analysis.timeline) * parts * per_step;
  const double peak = analysis.roofline.peak_flops * static_cast<double>(devices_of(record));
  if (peak > 0) analysis.flop_use = analysis.model_flops_per_s / peak;
}

// Of all ranks together, where each has a part of the network.
std::int64_t model_parameters(const Scenario& scenario, const Timeline& timeline) {
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  const bool divided = scenario.parallel.pipeline > 1 || scenario.workload.tensor > 1 || expert_ranks(scenario) > 1;
  if (!divided || family == nullptr || family->network == nullptr) return parameter_count(timeline);
  Scenario whole = scenario;
  whole.workload.tensor = 1;
  whole.workload.parallel = {};
  std::int64_t count = 0;
  for (const NetworkModule& module : network_of(whole).modules)
    for (const NamedShape& weight : module.module->weights) {
      count += weight.shape.elements();
      if (weight.padding_rows > 0) count -= weight.shape.elements() / weight.shape.dims.front() * weight.padding_rows;
    }
  return count;
}

void add_peaks(Analysis& analysis) {
  std::array<std::int64_t, kTierCount> sum{};
  for (std::size_t i = 0; i < analysis.record->ranks.size(); ++i) {
    const auto& of_rank = analysis.record->ranks[i].peak_bytes;
    for (std::size_t tier = 0; tier < sum.size(); ++tier) sum[tier] += of_rank[tier];
    analysis.peak_bytes.emplace_back("device" + std::to_string(analysis.timeline.ranks[i].rank),
                                     of_rank[static_cast<std::size_t>(Tier::Device)]);
  }
  const std::int64_t host = sum[static_cast<std::size_t>(Tier::HostPinned)];
  analysis.peak_bytes.emplace_back("host", host);
  analysis.peak_bytes.emplace_back("host_pinned",
                                   std::min(host, pinned_capacity_bytes(analysis.record->scenario->machine, 1)));
  analysis.peak_bytes.emplace_back("disk", sum[static_cast<std::size_t>(Tier::Disk)]);
}

void add_evictions(Analysis& analysis) {
  for (const auto& [tier, name] : {std::pair{Tier::HostPinned, "host"}, {Tier::Disk, "disk"}}) {
    std::int64_t bytes = 0;
    for (const RankRecord& rank : analysis.record->ranks) bytes += rank.evicted_bytes[static_cast<std::size_t>(tier)];
    if (bytes > 0) analysis.evicted_bytes.emplace_back(name, bytes);
  }
}

void add_lane_totals(Analysis& analysis, const RunTotals& totals) {
  for (LaneReport& lane : analysis.lanes) {
    const auto found = totals.lanes().find({lane.rank, lane.lane});
    if (found == totals.lanes().end()) continue;
    lane.use.commands = found->second.commands;
    lane.use.bytes = found->second.bytes;
  }
}

WholeRun whole_run(const RunTotals& totals) {
  WholeRun run;
  run.commands = totals.commands();
  run.makespan_ns = totals.makespan_ns();
  run.steps = static_cast<std::int64_t>(totals.steps().size());
  std::int64_t begin_ns = 0;  // of the step in hand
  for (const RunTotals::StepTotal& step : totals.steps()) {
    if (&step != &totals.steps().front()) run.times_ns.push_back(step.end_ns - begin_ns);
    begin_ns = std::max(step.end_ns, step.evaluation_end_ns);
  }
  if (run.steps == 0) return run;
  run.head_ns = totals.steps().front().end_ns;
  run.tail_ns = run.makespan_ns - totals.steps().back().end_ns;
  return run;
}

WholeRun whole_run(const Analysis& analysis) {
  if (const RunTotals* totals = analysis.record->totals) return whole_run(*totals);
  const Steps& steps = analysis.steps;
  return {.times_ns = steps.times_ns,
          .steps = static_cast<std::int64_t>(steps.ends_ns.size()),
          .head_ns = steps.head_ns,
          .tail_ns = steps.tail_ns,
          .makespan_ns = analysis.timeline.makespan.ns,
          .commands = analysis.timeline.commands_count};
}

void add_figures(Analysis& analysis, const RunTotals& totals) {
  for (const RunTotals::StepTotal& step : totals.steps()) {
    if (step.has_loss) analysis.loss.push_back(step.loss);
    if (step.has_norm) analysis.gradient_norm.push_back(step.gradient_norm);
  }
  for (const RunTotals::Evaluation& at : totals.evaluations())
    analysis.validation_loss.push_back({training_step(*analysis.record->scenario, at.step) + 1, at.loss});
  analysis.skipped_steps = totals.skipped().skipped();
  analysis.loss_scale = totals.skipped().loss_scale();
}

void add_figures(Analysis& analysis) {
  if (const RunTotals* totals = analysis.record->totals) return add_figures(analysis, *totals);
  const Scenario& scenario = *analysis.record->scenario;
  SkippedSteps skipped(scenario, analysis.record->loss_scale_before);
  for (const auto& [step, figures] : step_figures(analysis.timeline)) {
    if (const auto loss = figures.loss()) analysis.loss.push_back(*loss);
    if (const auto norm = figures.gradient_norm()) analysis.gradient_norm.push_back(*norm);
    skipped.take(figures.gradient_norm());
    if (const auto loss = figures.validation_loss())
      analysis.validation_loss.push_back({training_step(scenario, step) + 1, *loss});
  }
  analysis.skipped_steps = skipped.skipped();
  analysis.loss_scale = skipped.loss_scale();
}

}  // namespace

Analysis analyse(const RunRecord& record) {
  Analysis analysis;
  analysis.record = &record;
  analysis.timeline = make_timeline(record);
  analysis.steps = find_steps(analysis.timeline);
  analysis.run = whole_run(analysis);
  analysis.run.commands += record.commands_of_others;
  if (analysis.run.steps > 0)
    analysis.mean_step_s = seconds(analysis.run.makespan_ns) / static_cast<double>(analysis.run.steps);
  std::vector<double> times;
  for (std::int64_t ns : analysis.run.times_ns) times.push_back(seconds(ns));
  analysis.step_s = spread_of(std::move(times), analysis.mean_step_s);
  if (!analysis.steps.ends_ns.empty())
    analysis.steady_step_s = seconds(analysis.steps.windows_ns()) / static_cast<double>(analysis.steps.window_steps());
  if (record.mode == "simulated") {
    analysis.step_interval = step_interval(analysis.timeline, analysis.steps, *record.scenario, analysis.step_s.median);
    analysis.measured = measured_share(analysis.timeline, analysis.steps, *record.scenario);
  }
  add_lanes(analysis);
  analysis.holder = holder(analysis.compute_s, analysis.exposed_s);
  analysis.path = path_parts(analysis.timeline, analysis.steps);
  analysis.stages = pipeline_stages(analysis.timeline, analysis.steps, *record.scenario);
  analysis.roofline = roofline(analysis.timeline, analysis.steps, *record.scenario);
  analysis.parameters = model_parameters(*record.scenario, analysis.timeline);
  analysis.trained_parameters = trained_parameter_count(analysis.timeline);
  analysis.compressed_parameters = compressed_parameter_count(analysis.timeline);
  if (record.totals != nullptr) add_lane_totals(analysis, *record.totals);
  add_throughput(analysis);
  add_peaks(analysis);
  add_evictions(analysis);
  analysis.checkpoint_s = seconds(record.totals != nullptr ? record.totals->save_ns() : save_ns(analysis.timeline));
  if (record.mode == "measured") add_figures(analysis);
  analysis.bound = lower_bound(record, analysis.timeline, analysis.steps);
  return analysis;
}

double samples_per_step(const WorkloadOptions& workload) {
  const double samples = static_cast<double>(workload.batch) * static_cast<double>(workload.micro_batches) *
                         static_cast<double>(workload.devices);
  return denoises(workload) ? samples / static_cast<double>(GenerationSizes(workload).new_tokens) : samples;
}

double tokens_per_step(const WorkloadOptions& workload) {
  if (const std::int64_t steps = workload.generate.integer_or("new_tokens", 0); steps > 1)  // later ones, on average
    return static_cast<double>(own_tokens(workload, 1, steps)) / static_cast<double>(steps - 1);
  const bool generates = workload.keys.has("new_tokens") || workload.generate.has("new_tokens");
  const std::int64_t tokens_per_sample = generates ? 1 : workload.keys.integer_or("sequence", 0);
  return samples_per_step(workload) * static_cast<double>(tokens_per_sample);
}

}  // namespace tandem
