#include "core/transforms/pipeline/pieces.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/check.hpp"
#include "core/transforms/pipeline/refuse.hpp"

namespace tandem {
namespace {

// While a byte comes from a device's memory, it does about a hundred operations on others.
constexpr std::int64_t kOperationsOfAByte = 100;

std::int64_t cost_of(const TrainingPlan& plan, OpSpecIndex op) {
  if (op == kNone) return 0;
  std::int64_t cost = 0;
  for (const Kernel& kernel : plan.ops[static_cast<std::size_t>(op)].work.kernels)
    cost += std::max(kernel.flops, kOperationsOfAByte * kernel.bytes) + kernel.fixed_ns;
  return cost;
}

// How many pieces it takes if none may cost more; each but the last ones takes as much as it may. `ends`: of each
// piece, the stage after its last one.
std::int64_t pack(const std::vector<std::int64_t>& costs, std::int64_t most, std::int64_t pieces,
                  std::vector<std::size_t>& ends) {
  ends.clear();
  std::int64_t in_piece = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const auto left = static_cast<std::int64_t>(costs.size() - i);
    const bool begun = i > (ends.empty() ? 0 : ends.back());
    const bool others_need_it = pieces - static_cast<std::int64_t>(ends.size()) > left;
    if (begun && (in_piece + costs[i] > most || others_need_it)) {
      ends.push_back(i);
      in_piece = 0;
    }
    in_piece += costs[i];
  }
  ends.push_back(costs.size());
  return static_cast<std::int64_t>(ends.size());
}

// Of each module, 1 for one of which there are several, else 0. Where none is like another, each counts.
std::vector<std::int64_t> layer_counts(const TrainingPlan& plan, const std::vector<PlanModule>& modules) {
  std::vector<std::vector<OpSpecIndex>> kinds;
  for (const PlanModule& module : modules) {
    kinds.emplace_back();
    for (const std::size_t stage : module.stages) kinds.back().push_back(plan.stages[stage].forward);
  }
  std::vector<std::int64_t> counts;
  for (const auto& kind : kinds) counts.push_back(std::count(kinds.begin(), kinds.end(), kind) > 1);
  const bool none = std::count(counts.begin(), counts.end(), 1) == 0;
  return none ? std::vector<std::int64_t>(counts.size(), 1) : counts;
}

}  // namespace

std::vector<PlanModule> modules_of(const TrainingPlan& plan) {
  std::vector<PlanModule> modules;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StageSpec& s = plan.stages[i];
    if (s.held_for != kNone) continue;
    if (!s.continues || modules.empty()) modules.emplace_back();
    modules.back().stages.push_back(i);
    modules.back().cost += cost_of(plan, s.forward) + cost_of(plan, s.backward);
  }
  return modules;
}

void place_held(const TrainingPlan& plan, std::vector<std::int32_t>& piece_of) {
  for (std::size_t i = 0; i < plan.stages.size(); ++i)
    if (const std::int32_t owner = plan.stages[i].held_for; owner != kNone)
      piece_of[i] = piece_of[static_cast<std::size_t>(owner)];
}

std::vector<std::int32_t> pieces_of(const TrainingPlan& plan, std::int32_t pieces, CutBy by) {
  CHECK(pieces >= 1, pieces);
  const std::vector<PlanModule> modules = modules_of(plan);
  require_pipeline(static_cast<std::size_t>(pieces) <= modules.size(), "parallel.pipeline",
                   "the network has " + std::to_string(modules.size()) + " modules to divide among " +
                       std::to_string(pieces) + " pieces",
                   "at most so many stages times chunks");
  std::vector<std::int64_t> costs;
  if (by == CutBy::Layers) costs = layer_counts(plan, modules);
  for (std::size_t i = 0; by == CutBy::Time && i < modules.size(); ++i) costs.push_back(modules[i].cost);
  std::int64_t low = *std::max_element(costs.begin(), costs.end());
  std::int64_t high = std::accumulate(costs.begin(), costs.end(), std::int64_t{0});
  std::vector<std::size_t> ends;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (pack(costs, middle, pieces, ends) <= pieces)
      high = middle;
    else
      low = middle + 1;
  }
  CHECK(pack(costs, low, pieces, ends) == pieces, pieces, ends.size());
  std::vector<std::int32_t> out(plan.stages.size(), 0);
  for (std::size_t i = 0, piece = 0; i < modules.size(); ++i) {
    piece += i == ends[piece];
    for (const std::size_t stage : modules[i].stages) out[stage] = static_cast<std::int32_t>(piece);
  }
  place_held(plan, out);
  return out;
}

}  // namespace tandem
