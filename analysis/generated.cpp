#include "analysis/generated.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/transforms/generation/generation_keys.hpp"

namespace tandem {
namespace {

bool computes(const TimedCommand& timed, const Graph& graph) {
  const Engine kind = timed.command->lane.kind();
  const bool on_lane = kind == Engine::Compute || kind == Engine::CpuCompute;
  return on_lane && timed.done && timed.command->op != kNone && graph.op(timed.command->op).step != kNone;
}

std::int64_t first_start_ns(const Timeline& timeline) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const RankTimeline& rank : timeline.ranks)
    for (const TimedCommand& timed : rank.commands)
      if (computes(timed, *rank.graph)) first = std::min(first, timed.started.ns);
  return first;
}

bool keeps_keys(const Timeline& timeline) {
  for (const RankTimeline& rank : timeline.ranks)
    for (std::int32_t tensor = 0; tensor < rank.graph->tensor_count(); ++tensor)
      if (rank.graph->tensor(tensor).role == Role::KvCache) return true;
  return false;
}

std::optional<Generated::Unused> unused_of(const WorkloadOptions& workload, std::int64_t steps) {
  const GenerationSizes sizes(workload);
  if (sizes.prompts.empty() && sizes.outputs.empty()) return std::nullopt;
  const auto texts = workload.batch * workload.micro_batches;
  const std::vector<std::int64_t> padding = sizes.padding();
  const auto padded = static_cast<double>(std::accumulate(padding.begin(), padding.end(), std::int64_t{0}));
  return Generated::Unused{
      padded / static_cast<double>(texts * sizes.prompt),
      1 - static_cast<double>(own_tokens(workload, 0, steps)) / static_cast<double>(texts * steps)};
}

}  // namespace

std::int64_t own_tokens(const WorkloadOptions& workload, std::int64_t from, std::int64_t to) {
  const GenerationSizes sizes(workload);
  if (sizes.outputs.empty()) return workload.batch * workload.micro_batches * (to - from);
  std::int64_t own = 0;
  for (const std::int64_t of_text : sizes.outputs) own += std::clamp(of_text, from, to) - from;
  return own;
}

std::optional<Generated> generated(const Scenario& scenario, const Timeline& timeline, std::int64_t head_ns,
                                   const std::vector<std::int64_t>& times_ns) {
  if (!generates(scenario)) return std::nullopt;
  const std::int64_t start_ns = first_start_ns(timeline);
  if (head_ns <= start_ns) return std::nullopt;
  const WorkloadOptions& workload = scenario.workload;
  const auto steps = 1 + static_cast<std::int64_t>(times_ns.size());
  const auto later = static_cast<double>(times_ns.size());
  const double later_s = 1e-9 * static_cast<double>(std::accumulate(times_ns.begin(), times_ns.end(), std::int64_t{0}));
  Generated of;
  of.first_token_s = 1e-9 * static_cast<double>(head_ns - start_ns);
  of.tokens_per_s = static_cast<double>(own_tokens(workload, 0, steps)) / (of.first_token_s + later_s);
  if (const GenerationSizes sizes(workload); sizes.denoises)
    of.images_per_s = of.tokens_per_s / static_cast<double>(sizes.new_tokens);
  of.has_cache = keeps_keys(timeline);
  if (later_s > 0)
    of.token_s = later_s / later, of.later_tokens_per_s = static_cast<double>(own_tokens(workload, 1, steps)) / later_s;
  of.unused = unused_of(workload, steps);
  return of;
}

}  // namespace tandem
