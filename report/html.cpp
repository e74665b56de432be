#include "report/html.hpp"

#include <nlohmann/json.hpp>

#include "report/html_data.hpp"
#include "report/summary.hpp"
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
                     ", " + std::to_string(runs.front()->steps.ends_ns.size()) + " steps, seed " +
                     std::to_string(scenario.seed);
  return runs.size() > 1 ? text : text + ", " + record.mode;
}

}  // namespace

std::string fill_page(std::string_view page, const std::vector<PagePiece>& pieces) {
  std::string text;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t open = page.find("{{", at);
    text += page.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const std::size_t close = page.find("}}", open);
    const std::string_view mark = page.substr(open + 2, close - open - 2);
    for (const PagePiece& piece : pieces)
      if (piece.mark == mark) text += piece.text;
    at = close + 2;
  }
  return text;
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
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
  return fill_page(html::k_page_html, {{"title", escape_html(terminal_text(title_of(runs)))},
                                       {"subtitle", escape_html(terminal_text(subtitle_of(runs)))},
                                       {"style", html::k_style_css},
                                       {"data", escape_json_for_html(json)},
                                       {"script", html::k_view_js}});
}

}  // namespace tandem
