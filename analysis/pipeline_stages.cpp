#include "analysis/pipeline_stages.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "analysis/stalls.hpp"
#include "core/graph/half_labels.hpp"
#include "core/graph/kernels.hpp"
#include "core/machine/cost_model.hpp"
#include "core/scenario/ranks.hpp"

namespace tandem {
namespace {

using Link = std::pair<Engine, bool>;  // its kind, between hosts

Engine whole_kind(Engine lane) {
  return lane == Engine::H2DSmall ? Engine::H2D : lane == Engine::D2HSmall ? Engine::D2H : lane;
}

// A transfer is counted where it is sent. Sizes are {bytes, [1: to another host]} or {elements, ranks, [on a host]}.
std::optional<std::pair<Link, std::int64_t>> sent_by(const Work& work, Engine lane) {
  const auto size = [&](std::size_t i) { return i < work.sizes.size() ? work.sizes[i] : 0; };
  if (is_transfer(work))
    return work.body == "send" ? std::optional{std::pair{Link{Engine::P2P, size(1) > 0}, size(0)}} : std::nullopt;
  if (lane != Engine::Collective) return std::nullopt;
  return std::pair{Link{lane, size(2) > 0 && size(2) < size(1)}, CostModel::memory_bytes(work)};
}

std::optional<std::pair<Link, std::int64_t>> moved_by(const RankTimeline& rank, const Command& command) {
  const Engine lane = command.lane.kind();
  if (command.kind == CommandKind::Run) return sent_by(rank.graph->work_of(rank.graph->op(command.op)), lane);
  if (lane == Engine::Compute) return std::nullopt;  // within the device's memory
  return std::pair{Link{whole_kind(lane), false}, command.part.bytes};
}

void add_links(const RankTimeline& rank, const Steps& steps, std::map<Link, std::int64_t>& bytes) {
  for (const auto& lane : rank.lanes)
    for (const CommandId id : lane) {
      const TimedCommand& timed = rank.at(id);
      if (!steps.counts(timed.finished.ns)) continue;
      if (const auto moved = moved_by(rank, *timed.command)) bytes[moved->first] += moved->second;
    }
}

double waiting_of(const RankTimeline& rank, const Steps& steps) {
  const auto length = static_cast<double>(std::max<std::int64_t>(1, steps.windows_ns()));
  return 1 - static_cast<double>(busy_ns(rank, Engine::Compute, steps.windows)) / length;
}

void add_figures(const Timeline& timeline, const Steps& steps, StageShare& stage) {
  const auto ranks = static_cast<double>(stage.ranks.size());
  std::map<Link, std::int64_t> bytes;
  for (const std::size_t rank : stage.ranks) {
    stage.waiting += waiting_of(timeline.ranks[rank], steps) / ranks;
    add_links(timeline.ranks[rank], steps, bytes);
  }
  const double parts = ranks * static_cast<double>(steps.window_steps());
  for (const auto& [link, moved] : bytes)
    if (moved > 0) stage.links.push_back({link.first, link.second, static_cast<double>(moved) / parts});
}

// Blocks that recompute alternate with their backwards: together they are the pass.
Phase pass_of(Phase phase) { return phase == Phase::Recompute ? Phase::Backward : phase; }

}  // namespace

std::vector<StageShare> pipeline_stages(const Timeline& timeline, const Steps& steps, const Scenario& scenario) {
  std::vector<StageShare> stages;
  if (scenario.parallel.pipeline <= 1 || steps.ends_ns.empty()) return stages;
  std::map<std::int64_t, std::vector<std::size_t>> ranks;
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i)
    ranks[place_of(scenario, timeline.ranks[i].rank).stage].push_back(i);
  for (auto& [stage, of_stage] : ranks) {
    stages.push_back({.stage = stage, .ranks = std::move(of_stage), .links = {}});
    add_figures(timeline, steps, stages.back());
  }
  return stages;
}

double waiting_share(const std::vector<StageShare>& stages) {
  double sum = 0;
  for (const StageShare& stage : stages) sum += stage.waiting;
  return stages.empty() ? 0 : sum / static_cast<double>(stages.size());
}

std::vector<StagePass> stage_passes(const RankTimeline& rank, std::int32_t step) {
  std::vector<StagePass> passes;
  bool of_weights_before = false;
  for (const CommandId id : rank.lanes[static_cast<std::size_t>(Engine::Compute)]) {
    const TimedCommand& timed = rank.at(id);
    if (timed.command->kind != CommandKind::Run) continue;
    const Op& op = rank.graph->op(timed.command->op);
    if (op.step != step || op.phase == Phase::Evaluate || op.phase == Phase::Save) continue;
    const Phase phase = pass_of(op.phase);
    const std::int32_t micro_batch = phase == Phase::Forward || phase == Phase::Backward ? op.micro_batch : kNone;
    // Of a backward in two, the half that makes gradients of weights is a pass of its own.
    const bool of_weights = rank.graph->label(op.label).ends_with(kBackwardWeights);
    const bool other_half = std::exchange(of_weights_before, of_weights) != of_weights;
    if (passes.empty() || other_half || passes.back().phase != phase || passes.back().micro_batch != micro_batch)
      passes.push_back({phase, micro_batch, timed.started.ns, timed.finished.ns});
    passes.back().end_ns = std::max(passes.back().end_ns, timed.finished.ns);
  }
  return passes;
}

}  // namespace tandem
