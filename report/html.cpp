#include "report/html.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/units.hpp"
#include "report/comparison.hpp"
#include "report/held_words.hpp"
#include "report/html_data.hpp"
#include "report/html_page.hpp"
#include "report/origin.hpp"
#include "report_html_pieces.hpp"

namespace tandem {
namespace {

std::string title_of(const std::vector<const Analysis*>& runs) {
  const Scenario& scenario = *runs.front()->record->scenario;
  const std::string name =
      scenario.path.empty() ? scenario.workload.family : scenario.path.substr(scenario.path.rfind('/') + 1);
  return (runs.size() > 1 ? "Predicted and measured: " : "") + name;
}

std::string subtitle_of(const std::vector<const Analysis*>& runs) {
  const RunRecord& record = *runs.front()->record;
  const Scenario& scenario = *record.scenario;
  std::string text = scenario.workload.family + " on " + scenario.machine.name + ", policy " + scenario.policy.name +
                     ", " + std::to_string(runs.front()->run.steps) + " steps, seed " + std::to_string(scenario.seed);
  return runs.size() > 1 ? text : text + ", " + record.mode;
}

}  // namespace

std::string run_sentence(const Analysis& run) {
  const Scenario& scenario = *run.record->scenario;
  return fmt::format("A step takes {}: {}.", format_time(run.step_s.median),
                     held_words(run.holder, scenario.machine.gpu, scenario.optimizer.name));
}

std::string compared_sentence(const Analysis& predicted, const Analysis& measured) {
  const double p = predicted.step_s.median, m = measured.step_s.median;
  const auto held = [](const Analysis& run) {
    return held_words(run.holder, run.record->scenario->machine.gpu, run.record->scenario->optimizer.name);
  };
  std::string text = fmt::format("A step takes {} predicted and {} measured{}; ", format_time(p), format_time(m),
                                 m > 0 ? ", an error of " + format_error(p / m - 1) : "");
  if (predicted.holder.cause == measured.holder.cause)
    return text +
           fmt::format("as measured, {} ({} predicted).", held(measured), format_percent(predicted.holder.share));
  return text + fmt::format("predicted, {}; measured, {}.", held(predicted), held(measured));
}

std::string escape_json_for_html(const std::string& json) {
  std::string escaped;
  escaped.reserve(json.size());
  for (const char c : json)
    if (c == '<')
      escaped += "\\u003c";
    else
      escaped += c;
  return escaped;
}

std::string html_report(const std::vector<const Analysis*>& runs, const std::vector<ComparedFigure>& table) {
  const std::string json = html_data(runs, table).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return html_page(
      {.title = title_of(runs),
       .subtitle = subtitle_of(runs),
       .headline = runs.size() > 1 ? compared_sentence(*runs[0], *runs[1]) : run_sentence(*runs.front()),
       .body = "<noscript>This report draws its charts with JavaScript, all of which is in this file.</noscript>",
       .origin = origin_html(origin_of(*runs.front()->record->scenario)),
       .script =
           fill_page(html::k_run_script_html, {{"data", escape_json_for_html(json)}, {"script", html::k_view_js}})});
}

}  // namespace tandem
