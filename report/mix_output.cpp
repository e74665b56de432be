// Placements over a mix on a terminal, and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.hpp"
#include "report/json_result.hpp"
#include "report/mix_report.hpp"
#include "report/summary.hpp"
#include "report/text_table.hpp"
#include "report/wrap.hpp"

namespace tandem {
namespace {

std::string cell(const std::optional<MixRun>& run) { return run ? format_count(run->samples_per_s) : "-"; }

// A terminal has room for those that choose, those without a part on the CPU, and those that are best somewhere.
std::vector<std::size_t> shown(const MixReport& r, const MixSweep& sweep, bool wide) {
  const std::vector<std::size_t> chosen = to_have(r, sweep);
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < r.placements.size(); ++i) {
    const bool plain = r.placements[i].name == r.placements[i].heading || !r.placements[i].fixed;
    if (wide || plain || std::find(chosen.begin(), chosen.end(), i) != chosen.end()) columns.push_back(i);
  }
  return columns;
}

std::string table(const MixReport& r, const MixSweep& sweep, bool wide) {
  const std::vector<std::size_t> columns = shown(r, sweep, wide), chosen = to_have(r, sweep);
  std::vector<TextRow> rows{{sweep.modality}};
  for (const std::size_t i : columns) rows.front().push_back(r.placements[i].heading);
  rows.front().insert(rows.front().end(), {"best", "held by"});
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const MixAtShare& point = sweep.points[i];
    TextRow row{fmt::format("{:.3g}", point.share)};
    for (const std::size_t p : columns) row.push_back(cell(point.runs[p]));
    if (chosen[i] != kNoPlacement) {
      const bool flips = i > 0 && chosen[i - 1] != kNoPlacement && chosen[i] != chosen[i - 1];
      row.push_back((flips ? "> " : "") + r.placements[chosen[i]].name);
      row.push_back(point.runs[chosen[i]]->holder.cause);
    }
    rows.push_back(std::move(row));
  }
  return aligned(std::move(rows));
}

constexpr std::string_view kLegend =
    "adaptive, static: what those policies choose, by step and for all; workers, device: where decoded items become "
    "numbers; +N: so many micro-batches of a step on the CPU (w+N, d+N); best: of those that never change, > where it "
    "flips; held by: the device's own work, or what it waits for most; -: it does not fit";

nlohmann::ordered_json point_json(const MixReport& r, const MixAtShare& point, std::size_t chosen) {
  nlohmann::ordered_json json = {{"share", point.share}};
  for (std::size_t i = 0; i < r.placements.size(); ++i) {
    nlohmann::ordered_json& of = json["placements"][r.placements[i].name];
    if (point.runs[i])
      of = {{"samples_per_s", point.runs[i]->samples_per_s},
            {"limited_by", {{"cause", point.runs[i]->holder.cause}, {"share", point.runs[i]->holder.share}}}};
    else
      of = {{"why_not", point.why_not[i]}};
  }
  if (chosen != kNoPlacement) json["best_fixed"] = r.placements[chosen].name;
  return json;
}

nlohmann::ordered_json sweep_json(const MixReport& r, const MixSweep& sweep) {
  nlohmann::ordered_json json = {{"modality", sweep.modality}, {"answer", answer(r, sweep)}};
  json["flips"] = nlohmann::ordered_json::array();
  for (const MixFlip& flip : flips(r, sweep))
    json["flips"].push_back(
        {{"share", flip.share}, {"from", r.placements[flip.from].name}, {"to", r.placements[flip.to].name}});
  const std::vector<std::size_t> chosen = to_have(r, sweep);
  for (std::size_t i = 0; i < sweep.points.size(); ++i)
    json["points"].push_back(point_json(r, sweep.points[i], chosen[i]));
  return json;
}

}  // namespace

std::string mix_text(const MixReport& r, std::size_t columns) {
  std::string text;
  for (const MixSweep& sweep : r.sweeps) {
    text += wrapped(terminal_text(answer(r, sweep) + " " + adaptive_sentence(r, sweep)), columns) + "\n\n";
    text += wrapped(terminal_text(fmt::format("{} on {}: samples/s by the share of {}{}, {}, simulated", r.family,
                                              r.machine, sweep.modality,
                                              sweep.others.empty() ? "" : " (" + sweep.others + ")", steps_words(r))),
                    columns) +
            "\n" + table(r, sweep, columns == kAnyColumns) + "\n";
  }
  return text + "  " + wrapped(kLegend, columns, 2) + "\n";
}

nlohmann::ordered_json mix_json(const MixReport& r) {
  nlohmann::ordered_json json = {{"schema", kResultSchema}, {"mode", "mix"},
                                 {"scenario", r.scenario},  {"machine", r.machine},
                                 {"family", r.family},      {"timed_steps", {r.first_timed, r.end_timed}}};
  put_origin(json, r.origin);
  for (const MixPlacement& placement : r.placements)
    json["placements"].push_back({{"name", placement.name},
                                  {"words", placement.words},
                                  {"fixed", placement.fixed},
                                  {"policy", placement.policy}});
  for (const MixSweep& sweep : r.sweeps) json["sweeps"].push_back(sweep_json(r, sweep));
  return json;
}

}  // namespace tandem
