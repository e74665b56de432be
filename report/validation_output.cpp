// The validation as text for people, and as CSV and JSON for programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.hpp"
#include "report/comparison.hpp"
#include "report/csv_cell.hpp"
#include "report/summary.hpp"
#include "report/validation.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLine = "{:<60} {:>9} {:>9} {:>7} {:>7} {:>12} {:>7}  {}\n";

// The cause with the largest error: "h2d +3.1%".
std::string main_cause(const ValidatedScenario& row) {
  if (row.cause_errors.empty()) return "";
  const auto largest =
      std::max_element(row.cause_errors.begin(), row.cause_errors.end(),
                       [](const auto& a, const auto& b) { return std::abs(a.second) < std::abs(b.second); });
  return largest->first + " " + format_error(largest->second);
}

// "±4.1% in": half its width over the predicted step, and whether the measured step is inside.
std::string interval_text(const ValidatedScenario& row) {
  if (!row.interval) return "-";
  return fmt::format("±{} {}", format_percent(row.interval_width() / 2), row.inside() ? "in" : "out");
}

std::string intervals_text(const ValidationTable& validation) {
  const IntervalFigures figures = interval_figures(validation);
  if (figures.scenarios == 0) return "";
  return fmt::format("inside the 90% interval: {} of {} step times, {} (aim {} to {}); median width {} (aim {})\n",
                     figures.inside, figures.scenarios, format_percent(figures.inside_share()),
                     format_percent(kLeastInsideAim), format_percent(kMostInsideAim),
                     format_percent(figures.median_width), format_percent(kWidthAim));
}

std::string sizes_text(const ErrorSizes& sizes) {
  return fmt::format("median {}, 90th percentile {}, worst {}, bias {}", format_percent(sizes.median),
                     format_percent(sizes.p90), format_percent(sizes.worst), format_error(sizes.bias));
}

std::string ranking_text(const std::vector<Ranking>& all) {
  if (all.empty()) return "";
  const auto right = std::count_if(all.begin(), all.end(), [](const Ranking& r) { return r.right(); });
  std::string text = fmt::format("fastest policy: foreseen, or within {} of it, in {} of {} groups\n",
                                 format_percent(kRankingAim), right, all.size());
  for (const Ranking& r : all)
    if (!r.right())
      text += fmt::format("  {} was predicted fastest and takes {} more than {}\n", terminal_text(r.predicted),
                          format_percent(r.excess), terminal_text(r.measured));
  return text;
}

Json number_or_null(double value) { return std::isnan(value) ? Json(nullptr) : Json(value); }

Json sizes_json(const ErrorSizes& sizes) {
  return {{"median", sizes.median}, {"p90", sizes.p90}, {"worst", sizes.worst}, {"bias", sizes.bias}};
}

}  // namespace

std::string validation_head() {
  return fmt::format(fmt::runtime(kLine), "scenario", "predicted", "measured", "spread", "error", "90% interval",
                     "peak", "largest part of the error");
}

std::string validation_line(const ValidatedScenario& row) {
  return fmt::format(fmt::runtime(kLine), terminal_text(row.name), format_time(row.predicted_s),
                     format_time(row.measured_s), format_percent(row.spread), format_error(row.step_error()),
                     interval_text(row), format_error(row.device_error), main_cause(row));
}

std::string validation_line(const FailedScenario& failure) {
  const auto said = [](const std::string& why) { return why.empty() ? std::string("ran") : terminal_text(why); };
  return fmt::format("{:<60} predicted: {}; measured: {}\n", terminal_text(failure.name), said(failure.predicted),
                     said(failure.measured));
}

std::string validation_summary(const ValidationTable& validation) {
  std::string text = fmt::format("step time, size of errors: {} (aim {}, {}, {}); {} scenarios\n",
                                 sizes_text(step_errors(validation)), format_percent(kMedianAim),
                                 format_percent(kP90Aim), format_percent(kWorstAim), validation.rows.size());
  text += intervals_text(validation);
  text += fmt::format("peak bytes of the device: {} (aim: worst {})\n", sizes_text(device_errors(validation)),
                      format_percent(kPeakAim));
  text += fmt::format("idle shares of lanes, the largest difference: {} (aim: median {})\n",
                      sizes_text(idle_errors(validation)), format_percent(kIdleAim));
  text += "by cause, of the measured step:\n";
  for (const auto& [cause, sizes] : cause_errors(validation))
    if (sizes.worst > 0) text += fmt::format("  {:<16} {}\n", cause, sizes_text(sizes));
  text += ranking_text(rankings(validation));
  for (const FailedScenario& failure : validation.failures) text += "no pair: " + validation_line(failure);
  for (const ValidatedScenario& row : validation.rows)
    if (misses(row)) text += "missed: " + validation_line(row);
  return text;
}

std::string validation_csv(const ValidationTable& validation) {
  const std::map<std::string, ErrorSizes> causes = cause_errors(validation);
  std::string text = "scenario,predicted_s,measured_s,spread,step_error,device_peak_error,host_peak_error,idle_error";
  for (const auto& [cause, sizes] : causes) text += "," + cause + "_error";
  text += ",interval_low_s,interval_high_s,inside\n";
  const auto cell = [](double value) { return std::isnan(value) ? std::string(",") : fmt::format(",{}", value); };
  for (const ValidatedScenario& row : validation.rows) {
    text += csv_cell(row.name);
    for (const double value : {row.predicted_s, row.measured_s, row.spread, row.step_error(), row.device_error,
                               row.host_error, row.idle_error})
      text += cell(value);
    for (const auto& [cause, sizes] : causes) {
      const auto found = row.cause_errors.find(cause);
      text += cell(found == row.cause_errors.end() ? 0 : found->second);
    }
    text += row.interval ? fmt::format(",{},{},{}\n", row.interval->low, row.interval->high, row.inside()) : ",,,\n";
  }
  return text;
}

Json validation_json(const ValidationTable& validation) {
  const ErrorSizes step = step_errors(validation), peak = device_errors(validation);
  const IntervalFigures intervals = interval_figures(validation);
  Json json{{"schema", 1},
            {"median_step_error", step.median},
            {"median_peak_error", peak.median},
            {"step_errors", sizes_json(step)},
            {"peak_errors", sizes_json(peak)},
            {"idle_errors", sizes_json(idle_errors(validation))},
            {"interval_90",
             {{"scenarios", intervals.scenarios},
              {"inside", intervals.inside_share()},
              {"median_width", intervals.median_width}}},
            {"cause_errors", Json::object()},
            {"scenarios", Json::array()},
            {"rankings", Json::array()},
            {"failures", Json::array()}};
  put_origin(json, validation.origin);
  for (const auto& [cause, sizes] : cause_errors(validation)) json["cause_errors"][cause] = sizes_json(sizes);
  for (const ValidatedScenario& row : validation.rows) {
    Json scenario = {{"scenario", row.name},
                     {"predicted_s", row.predicted_s},
                     {"measured_s", row.measured_s},
                     {"spread", row.spread},
                     {"step_error", row.step_error()},
                     {"peak_error", number_or_null(row.device_error)},
                     {"host_peak_error", number_or_null(row.host_error)},
                     {"idle_error", row.idle_error},
                     {"cause_errors", row.cause_errors}};
    if (row.interval) {
      scenario["interval_90"] = {row.interval->low, row.interval->high};
      scenario["inside"] = row.inside();
    }
    json["scenarios"].push_back(std::move(scenario));
  }
  for (const Ranking& r : rankings(validation))
    json["rankings"].push_back({{"predicted", r.predicted}, {"measured", r.measured}, {"excess", r.excess}});
  for (const FailedScenario& f : validation.failures)
    json["failures"].push_back({{"scenario", f.name}, {"predicted", f.predicted}, {"measured", f.measured}});
  return json;
}

}  // namespace tandem
