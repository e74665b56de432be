#include "analysis/analysis.hpp"

#include <algorithm>
#include <array>

#include "core/scenario/schedule.hpp"

namespace tandem {
namespace {

std::int64_t devices_of(const RunRecord& record) {
  return std::max<std::int64_t>(static_cast<std::int64_t>(record.ranks.size()), record.scenario->workload.devices);
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
    for (int i = 0; i < kEngineCount; ++i)
      if (uses[static_cast<std::size_t>(i)].commands > 0)
        analysis.lanes.push_back({rank.rank, static_cast<Engine>(i), uses[static_cast<std::size_t>(i)]});
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
  if (analysis.step_s.median <= 0) return;
  const RunRecord& record = *analysis.record;
  const double per_step = 1 / analysis.step_s.median;
  analysis.samples_per_s = samples_per_step(record.scenario->workload) * per_step;
  analysis.tokens_per_s = tokens_per_step(record.scenario->workload) * per_step;
  // A process of a run of several knows its own part, which all others equal.
  const double parts = static_cast<double>(devices_of(record)) / static_cast<double>(record.ranks.size());
  analysis.model_flops_per_s = model_flops_per_step(analysis.timeline) * parts * per_step;
}

void add_peaks(Analysis& analysis) {
  std::array<std::int64_t, kTierCount> sum{};
  for (std::size_t i = 0; i < analysis.record->ranks.size(); ++i) {
    const auto& of_rank = analysis.record->ranks[i].peak_bytes;
    for (std::size_t tier = 0; tier < sum.size(); ++tier) sum[tier] += of_rank[tier];
    analysis.peak_bytes.emplace_back("device" + std::to_string(analysis.timeline.ranks[i].rank),
                                     of_rank[static_cast<std::size_t>(Tier::Device)]);
  }
  const std::int64_t pinned = sum[static_cast<std::size_t>(Tier::HostPinned)];
  analysis.peak_bytes.emplace_back("host", pinned + sum[static_cast<std::size_t>(Tier::HostPageable)]);
  analysis.peak_bytes.emplace_back("host_pinned", pinned);
  analysis.peak_bytes.emplace_back("disk", sum[static_cast<std::size_t>(Tier::Disk)]);
}

void add_evictions(Analysis& analysis) {
  for (const auto& [tier, name] : {std::pair{Tier::HostPinned, "host"}, {Tier::Disk, "disk"}}) {
    std::int64_t bytes = 0;
    for (const RankRecord& rank : analysis.record->ranks) bytes += rank.evicted_bytes[static_cast<std::size_t>(tier)];
    if (bytes > 0) analysis.evicted_bytes.emplace_back(name, bytes);
  }
}

void add_figures(Analysis& analysis) {
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
  analysis.mean_step_s = analysis.steps.mean_step_s(analysis.timeline);
  std::vector<double> times;
  for (std::int64_t ns : analysis.steps.times_ns) times.push_back(seconds(ns));
  analysis.step_s = spread_of(std::move(times), analysis.mean_step_s);
  if (!analysis.steps.ends_ns.empty())
    analysis.steady_step_s = seconds(analysis.steps.windows_ns()) / static_cast<double>(analysis.steps.window_steps());
  if (record.mode == "simulated")
    analysis.step_interval = step_interval(analysis.timeline, analysis.steps, *record.scenario, analysis.step_s.median);
  add_lanes(analysis);
  add_throughput(analysis);
  add_peaks(analysis);
  add_evictions(analysis);
  analysis.checkpoint_s = seconds(save_ns(analysis.timeline));
  if (record.mode == "measured") add_figures(analysis);
  analysis.bound = lower_bound(record, analysis.timeline, analysis.steps);
  return analysis;
}

double samples_per_step(const WorkloadOptions& workload) {
  return static_cast<double>(workload.batch) * static_cast<double>(workload.micro_batches) *
         static_cast<double>(workload.devices);
}

double tokens_per_step(const WorkloadOptions& workload) {
  const std::int64_t tokens_per_sample = workload.new_tokens > 0 ? 1 : workload.sequence;
  return samples_per_step(workload) * static_cast<double>(tokens_per_sample);
}

}  // namespace tandem
