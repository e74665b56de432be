// Policies side by side as text for people, and as CSV and JSON for programs.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.hpp"
#include "core/yaml/position.hpp"
#include "report/csv_cell.hpp"
#include "report/policy_comparison.hpp"
#include "report/reasons.hpp"
#include "report/summary.hpp"
#include "report/text_table.hpp"

namespace tandem {
namespace {

using Row = TextRow;

bool uses_disk(const PolicyComparison& comparison) {
  const PolicyFigure& disk = policy_figure("disk_bytes");
  return std::any_of(comparison.runs.begin(), comparison.runs.end(),
                     [&](const PolicyRun& run) { return run.ran() && disk.of(run.result) > 0; });
}

// What fits into 80 columns, or all.
std::vector<std::string> shown_figures(const PolicyComparison& comparison, bool wide) {
  if (!wide) return {"step_s", rate_figure(comparison), "gpu_idle_share", "device_bytes", "host_bytes"};
  std::vector<std::string> names{"step_s"};
  for (const char* name : {rate_figure(comparison), "gpu_idle_share", "cpu_idle_share", "h2d_idle_share",
                           "d2h_idle_share", "above_lower_bound", "above_policy_bound", "device_bytes",
                           "host_pinned_bytes", "host_bytes", "h2d_bytes_a_step", "d2h_bytes_a_step"})
    names.emplace_back(name);
  if (uses_disk(comparison))
    for (const char* name : {"disk_bytes", "disk_idle_share", "disk_read_bytes_a_step", "disk_write_bytes_a_step"})
      names.emplace_back(name);
  return names;
}

// A row a policy, its figures beside each other.
std::string one_scenario(const PolicyComparison& comparison, bool wide) {
  const bool of_largest = !comparison.largest.empty();
  std::vector<std::string> names = shown_figures(comparison, wide);
  if (of_largest) names.insert(names.begin(), "parameters");
  Row heads{"policy", of_largest ? "largest" : "of best"};
  for (const std::string& name : names) heads.emplace_back(policy_figure(name).words);
  std::vector<Row> rows{heads};
  const auto step_s = [](const PolicyRun& run) { return policy_figure("step_s").of(run.result); };
  for (const PolicyRun& run : comparison.runs) {
    if (!run.ran()) continue;
    // Those that ran come first, the fastest of them before all.
    Row row{run.policy, of_largest ? std::to_string(*run.largest)
                                   : fmt::format("{:.2f}", step_s(run) / step_s(comparison.runs.front()))};
    for (const std::string& name : names) row.push_back(policy_figure(name).shown(policy_figure(name).of(run.result)));
    rows.push_back(std::move(row));
  }
  return aligned(std::move(rows));
}

// A row a policy, a column a value.
template <typename F>
std::string pivot(const PolicyComparison& comparison, const std::string& title, F&& cell) {
  std::vector<Row> rows{{"policy"}};
  rows.front().insert(rows.front().end(), comparison.values.begin(), comparison.values.end());
  const std::size_t policies = comparison.runs.size() / comparison.values.size();
  for (std::size_t p = 0; p < policies; ++p) {
    rows.push_back({comparison.runs[p].policy});
    for (std::size_t v = 0; v < comparison.values.size(); ++v) {
      const PolicyRun& run = comparison.runs[v * policies + p];
      rows.back().push_back(run.ran() ? cell(run) : run.does_not_fit ? "no room" : run.failed ? "failed" : "refused");
    }
  }
  return title + " by " + terminal_text(comparison.over) + "\n" + aligned(std::move(rows)) + "\n";
}

std::string pivots(const PolicyComparison& comparison) {
  std::string text;
  if (!comparison.largest.empty())
    text += pivot(comparison, "largest " + comparison.largest,
                  [](const PolicyRun& r) { return std::to_string(*r.largest); });
  std::vector<const char*> names{rate_figure(comparison), "step_s", "gpu_idle_share", "device_bytes"};
  if (!comparison.largest.empty()) names = {"parameters", "step_s"};
  for (const char* name : names) {
    const PolicyFigure& figure = policy_figure(name);
    text += pivot(comparison, figure.words, [&](const PolicyRun& r) { return figure.shown(figure.of(r.result)); });
  }
  return text;
}

}  // namespace

std::string policies_text(const PolicyComparison& comparison, bool wide) {
  std::string text = comparison.over.empty() ? one_scenario(comparison, wide) : pivots(comparison);
  std::vector<Reason> reasons;
  for (const PolicyRun& run : comparison.runs)
    if (!run.ran())
      reasons.push_back(
          {run.policy + (comparison.over.empty() ? "" : " (" + run.value + ")"), run.policy, run.why_not});
  for (const MergedReason& reason : merged(reasons))
    text += terminal_text(join(reason.names) + ": " + reason.why) + "\n";
  return text;
}

std::string policies_csv(const PolicyComparison& comparison) {
  std::string text = "policy";
  if (!comparison.over.empty()) text += "," + csv_cell(comparison.over);
  if (!comparison.largest.empty()) text += "," + csv_cell("largest " + comparison.largest);
  for (const PolicyFigure& figure : policy_figures()) text += fmt::format(",{}", figure.name);
  text += ",why_not\n";
  for (const PolicyRun& run : comparison.runs) {
    text += csv_cell(run.policy);
    if (!comparison.over.empty()) text += "," + csv_cell(run.value);
    if (!comparison.largest.empty()) text += "," + (run.largest ? std::to_string(*run.largest) : "");
    for (const PolicyFigure& figure : policy_figures())
      text += run.ran() ? fmt::format(",{}", figure.of(run.result)) : ",";
    text += "," + (run.ran() ? "" : csv_cell(run.why_not)) + "\n";
  }
  return text;
}

nlohmann::ordered_json policies_json(const PolicyComparison& comparison) {
  nlohmann::ordered_json json{{"schema", 1}};
  put_origin(json, comparison.origin);
  if (!comparison.over.empty()) json["over"] = comparison.over;
  if (!comparison.largest.empty()) json["largest_of"] = comparison.largest;
  json["policies"] = nlohmann::ordered_json::array();
  for (const PolicyRun& run : comparison.runs) {
    nlohmann::ordered_json row{{"policy", run.policy}, {"exit_code", run.exit_code}};
    if (!comparison.over.empty()) row["value"] = run.value;
    if (run.largest) row["largest"] = *run.largest;
    if (run.ran())
      row["result"] = run.result;
    else
      row["why_not"] = run.why_not;
    json["policies"].push_back(std::move(row));
  }
  return json;
}

}  // namespace tandem
