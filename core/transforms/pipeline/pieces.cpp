#include "core/transforms/pipeline/pieces.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/check.hpp"
#include "core/machine/cost_model.hpp"
#include "core/transforms/pipeline/refuse.hpp"

namespace tandem {
namespace {

// What ops of a plan take, each work looked at once.
class OpTimes {
 public:
  OpTimes(const TrainingPlan& plan, const HardwareProfile& machine) : plan_(plan), model_(machine) {}
  std::int64_t operator()(OpSpecIndex op) {
    if (op == kNone) return 0;
    const auto [found, fresh] = ns_.try_emplace(op, 0);
    if (fresh) {
      const WorkId work = works_.add_work(plan_.ops[static_cast<std::size_t>(op)].work);
      found->second = model_.run_ns(works_, work, Engine::Compute);
    }
    return found->second;
  }

 private:
  const TrainingPlan& plan_;
  const CostModel model_;
  Graph works_;
  std::map<OpSpecIndex, std::int64_t> ns_;
};

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

// Of each module, 1 for one of which there are several, else 0: what ranks send each other has ops of its own in each.
// Where none is like another, each counts.
std::vector<std::int64_t> layer_counts(const TrainingPlan& plan, const std::vector<PlanModule>& modules) {
  std::vector<std::vector<OpSpecIndex>> kinds;
  for (const PlanModule& module : modules) {
    kinds.emplace_back();
    for (const std::size_t stage : module.stages)
      if (plan.stages[stage].exchange == Exchange::None) kinds.back().push_back(plan.stages[stage].forward);
  }
  std::vector<std::int64_t> counts;
  for (const auto& kind : kinds) counts.push_back(std::count(kinds.begin(), kinds.end(), kind) > 1);
  const bool none = std::count(counts.begin(), counts.end(), 1) == 0;
  return none ? std::vector<std::int64_t>(counts.size(), 1) : counts;
}

// `ends`: of each piece, the module after its last one.
std::vector<std::int32_t> pieces_that_end(const TrainingPlan& plan, const std::vector<PlanModule>& modules,
                                          const std::vector<std::size_t>& ends) {
  std::vector<std::int32_t> out(plan.stages.size(), 0);
  for (std::size_t i = 0, piece = 0; i < modules.size(); ++i) {
    piece += i == ends[piece];
    for (const std::size_t stage : modules[i].stages) out[stage] = static_cast<std::int32_t>(piece);
  }
  place_held(plan, out);
  return out;
}

}  // namespace

std::vector<PlanModule> modules_of(const TrainingPlan& plan, const PassTimes& times) {
  OpTimes ns(plan, times.machine);
  std::vector<PlanModule> modules;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StageSpec& s = plan.stages[i];
    if (s.held_for != kNone) continue;
    if (!s.continues || modules.empty()) modules.emplace_back();
    modules.back().stages.push_back(i);
    modules.back().ns += ns(s.forward) + ns(s.backward);
    if (times.recomputes && s.recomputable) modules.back().ns += ns(s.recompute);
  }
  return modules;
}

void place_held(const TrainingPlan& plan, std::vector<std::int32_t>& piece_of) {
  for (std::size_t i = 0; i < plan.stages.size(); ++i)
    if (const std::int32_t owner = plan.stages[i].held_for; owner != kNone)
      piece_of[i] = piece_of[static_cast<std::size_t>(owner)];
}

std::vector<std::int32_t> pieces_of(const TrainingPlan& plan, std::int32_t pieces, const PassTimes& times, CutBy by) {
  CHECK(pieces >= 1, pieces);
  const std::vector<PlanModule> modules = modules_of(plan, times);
  require_pipeline(static_cast<std::size_t>(pieces) <= modules.size(), "parallel.pipeline",
                   "the network has " + std::to_string(modules.size()) + " modules to divide among " +
                       std::to_string(pieces) + " pieces",
                   "at most so many stages times chunks");
  std::vector<std::int64_t> costs;
  if (by == CutBy::Layers) costs = layer_counts(plan, modules);
  for (std::size_t i = 0; by == CutBy::Time && i < modules.size(); ++i) costs.push_back(modules[i].ns);
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
  return pieces_that_end(plan, modules, ends);
}

std::vector<std::int32_t> pieces_of(const TrainingPlan& plan, const std::vector<std::int64_t>& modules_of_each,
                                    const PassTimes& times) {
  const std::vector<PlanModule> modules = modules_of(plan, times);
  std::vector<std::size_t> ends;
  for (const std::int64_t count : modules_of_each)
    ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<std::size_t>(count));
  const auto name = [&](const PlanModule& module) { return plan.stages[module.stages.front()].name; };
  require_pipeline(ends.back() == modules.size(), "parallel.cut",
                   "its numbers add up to " + std::to_string(ends.back()) + ", and the network has " +
                       std::to_string(modules.size()) + " modules, " + name(modules.front()) + " to " +
                       name(modules.back()),
                   "as many as there are");
  return pieces_that_end(plan, modules, ends);
}

}  // namespace tandem
