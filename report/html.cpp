#include "report/html.hpp"

#include <nlohmann/json.hpp>

#include "report/html_data.hpp"
#include "report/html_page.hpp"
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
      title_of(runs), subtitle_of(runs),
      fill_page(html::k_run_body_html, {{"data", escape_json_for_html(json)}, {"script", html::k_view_js}}),
      /*scripts=*/true);
}

}  // namespace tandem
