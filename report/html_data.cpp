#include "report/html_data.hpp"

#include <algorithm>
#include <map>

#include "analysis/equal_ranks.hpp"
#include "analysis/tier_capacity.hpp"
#include "analysis/typical_step.hpp"
#include "analysis/waits.hpp"
#include "core/scenario/capacity.hpp"
#include "report/json_result.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// A browser draws this many slices smoothly; a longer run shows its beginning and says what is left out.
constexpr std::int64_t kMostSlices = 100'000;
constexpr std::size_t kMostMemoryPoints = 4'000;

// Colours are names that the style sheet defines: phases for ops, roles for what copies carry.
Json colour_names() {
  Json names = Json::array();
  for (int phase = 0; phase < kPhaseCount; ++phase) names.push_back(name_of(static_cast<Phase>(phase)));
  for (int role = 0; role < kRoleCount; ++role) names.push_back(name_of(static_cast<Role>(role)));
  return names;
}

int colour_of(const Graph& graph, const Command& command) {
  if (command.kind == CommandKind::Run) return static_cast<int>(graph.op(command.op).phase);
  return kPhaseCount + static_cast<int>(graph.tensor_of(command.part.value).role);
}

class Names {
 public:
  std::size_t index(const std::string& name) {
    const auto [it, added] = indices_.try_emplace(name, list_.size());
    if (added) list_.push_back(name);
    return it->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, std::size_t> indices_;
  std::vector<std::string> list_;
};

// Up to when all slices are shown.
std::int64_t shown_until(const Timeline& timeline) {
  std::vector<std::int64_t> starts;
  for (const RankTimeline& rank : timeline.ranks)
    for (const auto& lane : rank.lanes)
      for (CommandId id : lane) starts.push_back(rank.at(id).started.ns);
  if (static_cast<std::int64_t>(starts.size()) <= kMostSlices) return timeline.makespan.ns;
  const auto last = starts.begin() + kMostSlices;
  std::nth_element(starts.begin(), last, starts.end());
  return *last;
}

std::string short_name(const Graph& graph, const Command& command) {
  if (command.kind == CommandKind::Copy) return graph.tensor_of(command.part.value).name;
  return std::string(graph.label(graph.op(command.op).label));
}

// Where a command stands in the page: its lane in the list of lanes, and its number there.
struct Spot {
  std::int32_t lane = kNone, slice = kNone;
};

// What the browser draws of a lane, flat: a slice has six numbers, from the end of the one before it on.
class LaneData {
 public:
  LaneData(const RankTimeline& rank, std::int64_t until_ns, Names& names)
      : rank_(rank), until_ns_(until_ns), names_(names), blame_(rank), places_(rank.commands.size()) {}

  // Returns how many slices are left out.
  std::int64_t place(LaneIndex lane, std::int32_t number) {
    std::int32_t slice = 0;
    for (CommandId id : rank_.lane(lane))
      if (rank_.at(id).started.ns <= until_ns_) places_[static_cast<std::size_t>(id)] = {number, slice++};
    return static_cast<std::int64_t>(rank_.lane(lane).size()) - slice;
  }

  Json slices(LaneIndex lane) {
    Json flat = Json::array();
    std::int64_t before_ns = 0;
    for (CommandId id : rank_.lane(lane)) {
      const TimedCommand& timed = rank_.at(id);
      if (timed.started.ns > until_ns_) continue;
      const Command& command = *timed.command;
      const bool run = command.kind == CommandKind::Run;
      flat.push_back(timed.started.ns - before_ns);
      flat.push_back(timed.finished.ns - timed.started.ns);
      flat.push_back(colour_of(*rank_.graph, command));
      flat.push_back(names_.index(short_name(*rank_.graph, command)));
      flat.push_back(run ? rank_.graph->op(command.op).step : kNone);
      flat.push_back(run ? 0 : command.part.bytes);
      before_ns = timed.finished.ns;
    }
    return flat;
  }

  // Flat: the number of the slice before which the lane stands idle, and the lane and slice that it waits for.
  Json waits(LaneIndex lane) const {
    Json flat = Json::array();
    for (const Wait& wait : waits_of(rank_, lane, blame_)) {
      const Spot next = at(wait.next), by = wait.by == kNoCommand ? Spot{} : at(wait.by);
      if (next.lane == kNone || by.lane == kNone) continue;
      for (const std::int32_t number : {next.slice, by.lane, by.slice}) flat.push_back(number);
    }
    return flat;
  }

 private:
  Spot at(CommandId id) const { return places_[static_cast<std::size_t>(id)]; }

  const RankTimeline& rank_;
  std::int64_t until_ns_;
  Names& names_;
  Blame blame_;
  std::vector<Spot> places_;
};

// "device0", or "device0-7" of ranks that stand in for each other; with gaps, "device0+3".
std::string device_name(const Timeline& timeline, const std::vector<std::size_t>& group) {
  const auto rank = [&](std::size_t i) { return timeline.ranks[i].rank; };
  std::string name = "device" + std::to_string(rank(group.front()));
  if (group.size() == 1) return name;
  const bool in_a_row = group.back() - group.front() + 1 == group.size();
  return name + (in_a_row ? "-" + std::to_string(rank(group.back())) : "+" + std::to_string(group.size() - 1));
}

Json memory(const RankTimeline& rank, const std::string& device, const Scenario& scenario) {
  Json tiers = Json::array();
  const MemorySeries series = memory_over_time(rank);
  for (int t = 0; t < kTierCount; ++t) {
    const Tier tier = static_cast<Tier>(t);
    const TierSeries points = thinned(series.of(tier), kMostMemoryPoints);
    if (points.empty()) continue;
    Json times = Json::array(), uses = Json::array(), rows = Json::array();
    for (const MemoryPoint& point : points) times.push_back(point.at_ns);
    for (int use = 0; use < kUseCount; ++use) {
      Json row = Json::array();
      for (const MemoryPoint& point : points) row.push_back(point.bytes[static_cast<std::size_t>(use)]);
      if (std::all_of(row.begin(), row.end(), [](const Json& bytes) { return bytes == 0; })) continue;
      uses.push_back(name_of_use(use));
      rows.push_back(std::move(row));
    }
    tiers.push_back({{"name", device + "/" + std::string(name_of(tier))},
                     {"capacity", tier_capacity_bytes(scenario, tier)},
                     {"uses", uses},
                     {"t", times},
                     {"b", rows}});
  }
  return tiers;
}

// One row a stage, as its first rank runs the step. Passes are flat: phase, micro-batch, begin, end.
Json stage_rows(const Analysis& analysis, std::int32_t step) {
  Json rows = Json::array();
  for (const StageShare& stage : analysis.stages) {
    Json flat = Json::array();
    const RankTimeline& rank = analysis.timeline.ranks[stage.ranks.front()];
    for (const StagePass& pass : stage_passes(rank, step))
      for (const std::int64_t number :
           {std::int64_t{static_cast<int>(pass.phase)}, std::int64_t{pass.micro_batch}, pass.begin_ns, pass.end_ns})
        flat.push_back(number);
    rows.push_back({{"stage", stage.stage}, {"ranks", stage.ranks.size()}, {"p", flat}});
  }
  return rows;
}

// A difference that no picture of a step shows.
constexpr std::int64_t kGrains = 1000;

Json run_data(const Analysis& analysis) {
  const RunRecord& record = *analysis.record;
  const Timeline& timeline = analysis.timeline;
  const StepStretch shown = typical_step(timeline);
  const std::int64_t until_ns = shown_until(timeline);
  std::int64_t left_out = 0;
  Names names;
  Json lanes = Json::array(), tiers = Json::array(), capacities = Json::object(), devices = Json::array();
  for (const auto& group : equal_ranks(timeline, (shown.end_ns - shown.begin_ns) / kGrains)) {
    const RankTimeline& rank = timeline.ranks[group.front()];
    const std::string device = device_name(timeline, group);
    devices.push_back({{"name", device}, {"ranks", group.size()}, {"first", "device" + std::to_string(rank.rank)}});
    LaneData data(rank, until_ns, names);
    std::vector<LaneIndex> used;
    for (std::size_t place = 0; place < rank.lanes.size(); ++place)
      if (!rank.lanes[place].empty()) used.push_back(LaneIndex::at(place));
    for (std::size_t i = 0; i < used.size(); ++i)
      left_out += data.place(used[i], static_cast<std::int32_t>(lanes.size() + i));
    for (const LaneIndex lane : used)
      lanes.push_back({{"name", device + "/" + name_of(lane)},
                       {"ranks", group.size()},
                       {"s", data.slices(lane)},
                       {"w", data.waits(lane)}});
    for (Json& tier : memory(rank, device, *record.scenario)) tiers.push_back(std::move(tier));
  }
  for (const auto& [tier, peak] : analysis.peak_bytes) capacities[tier] = capacity_of_peak(*record.scenario, tier);
  const auto& windows = analysis.steps.windows;
  return {
      {"title", record.scenario->policy.name},
      {"mode", record.mode},
      {"makespan_ns", timeline.makespan.ns},
      {"typical", {{"step", shown.step}, {"from", shown.begin_ns}, {"to", shown.end_ns}}},
      {"window",
       {{"from", windows.front().begin_ns}, {"to", windows.back().end_ns}, {"steps", analysis.steps.window_steps()}}},
      {"step_ends_ns", analysis.steps.ends_ns},
      {"slices_left_out", left_out},
      {"shown_until_ns", until_ns},
      {"capacity_bytes", capacities},
      {"devices", devices},
      {"lanes", lanes},
      {"names", names.list()},
      {"memory", tiers},
      {"stages", stage_rows(analysis, shown.step)},
      {"result", to_json(analysis)}};
}

}  // namespace

nlohmann::ordered_json html_data(const std::vector<const Analysis*>& runs, const std::vector<ComparedFigure>& table) {
  Json all = Json::array(), rows = Json::array();
  for (const Analysis* run : runs) all.push_back(run_data(*run));
  for (const ComparedFigure& figure : table)
    rows.push_back({figure.name, figure.predicted, figure.measured, format_error(figure.error)});
  return {{"colours", colour_names()}, {"runs", all}, {"table", rows}};
}

}  // namespace tandem
