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

std::string steps_words(std::int64_t steps) { return std::to_string(steps) + (steps == 1 ? " step" : " steps"); }

std::string subtitle_of(const std::vector<const Analysis*>& runs) {
  const RunRecord& record = *runs.front()->record;
  const Scenario& scenario = *record.scenario;
  std::string text = scenario.workload.family + " on " + scenario.machine.name + ", policy " + scenario.policy.name +
                     ", " + steps_words(runs.front()->run.steps) + ", seed " + std::to_string(scenario.seed);
  return runs.size() > 1 ? text : text + ", " + record.mode;
}

// Shares of a run of one step are of less than its length.
std::string only_step_words(const Analysis& run) {
  if (run.steps.ends_ns.size() != 1) return "";
  return fmt::format(" (the run has one; shares are of the {} to the end of its computations)",
                     format_time(seconds(run.steps.ends_ns.front())));
}

// One run tells what it waits for; what helps is told by several.
std::string hint_of(const RunRecord& record) {
  const bool measured = record.mode == "measured";
  return fmt::format("`tandem explain {}` measures{} what more of each resource, and each other policy, would save{}.",
                     measured ? "LOG" : "FILE", measured ? " by simulation" : "",
                     measured ? "; --log writes the LOG" : ", with the same --set as here");
}

}  // namespace

std::string run_sentence(const Analysis& run) {
  const Scenario& scenario = *run.record->scenario;
  return fmt::format("A step takes {}{}: {}.", format_time(run.step_s.median), only_step_words(run),
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
       .hint = runs.size() > 1 ? "" : hint_of(*runs.front()->record),
       .body = "<noscript>This report draws its charts with JavaScript, all of which is in this file.</noscript>",
       .origin = origin_html(origin_of(*runs.front()->record->scenario)),
       .script =
           fill_page(html::k_run_script_html, {{"data", escape_json_for_html(json)}, {"script", html::k_view_js}})});
}

}  // namespace tandem
