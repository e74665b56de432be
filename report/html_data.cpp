#include "report/html_data.hpp"

#include <algorithm>
#include <map>

#include "analysis/tier_capacity.hpp"
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

Json slices(const RankTimeline& rank, LaneIndex lane, std::int64_t until_ns, Names& names, std::int64_t& left_out) {
  Json flat = Json::array();
  for (CommandId id : rank.lane(lane)) {
    const TimedCommand& timed = rank.at(id);
    if (timed.started.ns > until_ns) {
      ++left_out;
      continue;
    }
    const Command& command = *timed.command;
    const bool run = command.kind == CommandKind::Run;
    flat.push_back(timed.started.ns);
    flat.push_back(timed.finished.ns - timed.started.ns);
    flat.push_back(colour_of(*rank.graph, command));
    flat.push_back(names.index(short_name(*rank.graph, command)));
    flat.push_back(run ? rank.graph->op(command.op).step : kNone);
    flat.push_back(run ? 0 : command.part.bytes);
  }
  return flat;
}

Json memory(const RankTimeline& rank, const Scenario& scenario) {
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
    tiers.push_back({{"name", "device" + std::to_string(rank.rank) + "/" + std::string(name_of(tier))},
                     {"capacity", tier_capacity_bytes(scenario, tier)},
                     {"uses", uses},
                     {"t", times},
                     {"b", rows}});
  }
  return tiers;
}

Json run_data(const Analysis& analysis) {
  const RunRecord& record = *analysis.record;
  const std::int64_t until_ns = shown_until(analysis.timeline);
  std::int64_t left_out = 0;
  Names names;
  Json lanes = Json::array(), tiers = Json::array(), capacities = Json::object();
  for (const RankTimeline& rank : analysis.timeline.ranks) {
    for (std::size_t place = 0; place < rank.lanes.size(); ++place) {
      const LaneIndex lane = LaneIndex::at(place);
      if (rank.lane(lane).empty()) continue;
      lanes.push_back({{"name", lane_name(rank.rank, lane)}, {"s", slices(rank, lane, until_ns, names, left_out)}});
    }
    for (Json& tier : memory(rank, *record.scenario)) tiers.push_back(std::move(tier));
  }
  for (const auto& [tier, peak] : analysis.peak_bytes) capacities[tier] = capacity_of_peak(*record.scenario, tier);
  return {{"title", record.scenario->policy.name},
          {"mode", record.mode},
          {"makespan_ns", analysis.timeline.makespan.ns},
          {"step_ends_ns", analysis.steps.ends_ns},
          {"slices_left_out", left_out},
          {"shown_until_ns", until_ns},
          {"capacity_bytes", capacities},
          {"lanes", lanes},
          {"names", names.list()},
          {"memory", tiers},
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
