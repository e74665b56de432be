// Policies side by side as a page: bar charts of one scenario, line charts over the values of a key, and all numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/charts.hpp"
#include "report/html_page.hpp"
#include "report/origin.hpp"
#include "report/policy_comparison.hpp"

namespace tandem {
namespace {

using Names = std::vector<std::string>;
using UnitOf = Unit (*)(double most);

Unit percent_unit(double /*most*/) { return {"%", 0.01}; }

struct Chart {
  const char* title;
  const char* note;
  const char* axis;  // before the unit
  Names figures;     // one bar of each row
  UnitOf unit;
};

std::vector<Chart> charts_of(const PolicyComparison& comparison) {
  return {
      {"Step time", "Median of the steps after the first: shorter is better.", "step time, ", {"step_s"}, time_unit},
      {"Throughput", "Of a step of median length: longer is better.", "", {rate_figure(comparison)}, count_unit},
      {"Memory by tier",
       "The most that the run held at once. Host counts pinned memory too.",
       "peak, ",
       {"device_bytes", "host_pinned_bytes", "host_bytes", "disk_bytes"},
       byte_unit},
      {"Traffic",
       "Copied in a training step, by lane.",
       "a step, ",
       {"h2d_bytes_a_step", "d2h_bytes_a_step", "disk_read_bytes_a_step", "disk_write_bytes_a_step"},
       byte_unit},
      {"Idle time",
       "Share of the timed steps in which a resource does nothing. PCIe is two: H2D and D2H.",
       "idle, ",
       {"gpu_idle_share", "cpu_idle_share", "h2d_idle_share", "d2h_idle_share", "disk_idle_share"},
       percent_unit},
      {"Distance from the bounds",
       "The mean step beyond a lower bound: of any schedule on this machine, and of one with the policy's own copies "
       "and ops.",
       "above the bound, ",
       {"above_lower_bound", "above_policy_bound"},
       percent_unit}};
}

const char* short_reason(const PolicyRun& run) {
  return run.does_not_fit ? "does not fit" : run.failed ? "failed" : "refused";
}

// Rates have their words instead of a unit's name.
std::string axis_of(const Chart& chart, const Unit& unit, const std::string& figure) {
  return chart.unit == count_unit ? unit.name + policy_figure(figure).words : chart.axis + unit.name;
}

const char* ended_words(const PolicyRun& run) { return run.does_not_fit ? "no room" : short_reason(run); }

// Of those that ran: what all have alike says nothing of one beside the others.
std::optional<double> same_for_all(const PolicyComparison& comparison, const std::string& name) {
  constexpr double kRounding = 1e-9;
  std::optional<double> same;
  std::size_t ran = 0;
  for (const PolicyRun& run : comparison.runs) {
    if (!run.ran()) continue;
    const double value = policy_figure(name).of(run.result);
    if (same && std::abs(value - *same) > kRounding * std::abs(*same)) return std::nullopt;
    same = value;
    ++ran;
  }
  return ran > 1 ? same : std::nullopt;
}

std::string constant_words(const std::string& name, double value) {
  return std::string(policy_figure(name).words) + " " + policy_figure(name).shown(value);
}

void list(std::string& all, const std::string& one) { all += (all.empty() ? "" : ", ") + one; }

// The best of a figure among rows; null: none ran.
const PolicyRun* best_of(const PolicyComparison& comparison, const PolicyFigure& figure) {
  const PolicyRun* best = nullptr;
  for (const PolicyRun& run : comparison.runs) {
    if (!run.ran()) continue;
    const double value = figure.of(run.result), than = best != nullptr ? figure.of(best->result) : value;
    if (best == nullptr || (figure.more_is_better ? value > than : value < than)) best = &run;
  }
  return best;
}

double most_of(const PolicyComparison& comparison, const Names& figures) {
  double most = 0;
  for (const PolicyRun& run : comparison.runs)
    for (const std::string& name : figures)
      if (run.ran()) most = std::max(most, policy_figure(name).of(run.result));
  return most;
}

// What is the same for all is added to `constants`. "" where no policy ran: the table says why.
std::string bar_section(const PolicyComparison& comparison, const Chart& chart, std::string& constants) {
  if (best_of(comparison, policy_figure("step_s")) == nullptr) return "";
  Names figures;  // without those that are 0 everywhere: mostly the disk's
  for (const std::string& name : chart.figures)
    if (chart.figures.size() == 1 || most_of(comparison, {name}) > 0) figures.push_back(name);
  // An idle disk says nothing where there is no traffic to it.
  if (most_of(comparison, {"disk_bytes"}) == 0) std::erase(figures, "disk_idle_share");
  std::erase_if(figures, [&](const std::string& name) {
    const std::optional<double> same = same_for_all(comparison, name);
    if (same) list(constants, constant_words(name, *same));
    return same.has_value();
  });
  if (figures.empty()) return "";
  const PolicyRun* best = figures.size() == 1 ? best_of(comparison, policy_figure(figures.front())) : nullptr;
  const Unit unit = chart.unit(most_of(comparison, figures));
  BarChart bars{axis_of(chart, unit, figures.front()), {}, {}};
  for (const std::string& name : figures) bars.series.emplace_back(policy_figure(name).words);
  for (const PolicyRun& run : comparison.runs) {
    BarChart::Row row{run.policy, {}, short_reason(run), &run == best};
    for (const std::string& name : figures)
      if (run.ran()) row.values.emplace_back(policy_figure(name).of(run.result) / unit.size);
    bars.rows.push_back(std::move(row));
  }
  return html_section(chart.title, chart.note, svg(bars));
}

// One line a policy; `of` is asked of runs that have a result.
std::string line_section(const PolicyComparison& comparison, const std::string& title, const std::string& note,
                         const std::string& axis, bool more_is_better,
                         const std::function<double(const PolicyRun&)>& of) {
  LineChart lines{comparison.over, axis, comparison.values, {}, more_is_better};
  const std::size_t policies = comparison.runs.size() / comparison.values.size();
  for (std::size_t p = 0; p < policies; ++p) {
    lines.series.push_back({comparison.runs[p].policy, {}, {}, p});
    for (std::size_t v = 0; v < comparison.values.size(); ++v) {
      const PolicyRun& run = comparison.runs[v * policies + p];
      lines.series.back().values.push_back(run.ran() ? std::optional(of(run)) : std::nullopt);
      lines.series.back().instead.emplace_back(run.ran() ? "" : ended_words(run));
    }
  }
  std::erase_if(lines.series, [](const LineChart::Series& series) {
    return std::none_of(series.values.begin(), series.values.end(),
                        [](const auto& value) { return value.has_value(); });
  });
  const std::string same = drop_equal(lines.series);
  best_first(lines);
  std::string notes = note + " A ring marks the best.";
  if (lines.series.size() > kShownLines)
    notes += fmt::format(" {} lines are drawn; point at another name, or tab to it, to see its line.", kShownLines);
  if (!same.empty()) notes += " " + plain_html(same);
  return html_section(title, notes, svg(lines));
}

std::string line_of(const PolicyComparison& comparison, const Chart& chart, const std::string& name) {
  const PolicyFigure& figure = policy_figure(name);
  const Unit unit = chart.unit(most_of(comparison, {name}));
  const std::string title = chart.figures.size() == 1 ? chart.title : std::string(chart.title) + ": " + figure.words;
  return line_section(comparison, title, chart.note, axis_of(chart, unit, name), figure.more_is_better,
                      [&](const PolicyRun& run) { return figure.of(run.result) / unit.size; });
}

std::string over_values(const PolicyComparison& comparison, std::string& constants) {
  std::string body;
  if (!comparison.largest.empty()) {
    body += line_section(comparison, "Largest " + plain_html(comparison.largest), "The largest that fits.",
                         "largest " + comparison.largest, /*more_is_better=*/true,
                         [](const PolicyRun& run) { return static_cast<double>(*run.largest); });
    const Chart sizes{"Largest model", "Parameters of the largest model that fits.", "", {"parameters"}, count_unit};
    return body + line_of(comparison, sizes, "parameters") +
           line_of(comparison, charts_of(comparison).front(), "step_s");
  }
  for (const Chart& chart : charts_of(comparison))
    for (const std::string& name : chart.figures)
      if (most_of(comparison, {name}) > 0 && !(name == "disk_idle_share" && most_of(comparison, {"disk_bytes"}) == 0)) {
        if (const std::optional<double> same = same_for_all(comparison, name))
          list(constants, constant_words(name, *same));
        else
          body += line_of(comparison, chart, name);
      }
  return body;
}

std::string largest_bars(const PolicyComparison& comparison) {
  const Unit unit = count_unit(most_of(comparison, {"parameters"}));
  BarChart bars{unit.name + "parameters", {"parameters"}, {}};
  const PolicyRun* best = best_of(comparison, policy_figure("parameters"));
  for (const PolicyRun& run : comparison.runs) {
    bars.rows.push_back({run.policy, {}, short_reason(run), &run == best});
    if (run.ran()) bars.rows.back().values.emplace_back(policy_figure("parameters").of(run.result) / unit.size);
  }
  return html_section("Largest model", "With the largest " + plain_html(comparison.largest) + " that fits.", svg(bars));
}

std::string table(const PolicyComparison& comparison) {
  Names heads{"policy"};
  if (!comparison.over.empty()) heads.push_back(plain_html(comparison.over));
  if (!comparison.largest.empty()) heads.push_back("largest " + plain_html(comparison.largest));
  const std::size_t named = heads.size();
  for (const PolicyFigure& figure : policy_figures()) heads.emplace_back(figure.words);
  std::string rows = html_row(heads, "th");
  for (const PolicyRun& run : comparison.runs) {
    Names cells{plain_html(run.policy)};
    if (!comparison.over.empty()) cells.push_back(plain_html(run.value));
    if (run.largest) cells.push_back(std::to_string(*run.largest));
    if (run.ran()) {
      for (const PolicyFigure& figure : policy_figures()) {
        const PolicyRun* best =
            comparison.over.empty() && !same_for_all(comparison, figure.name) ? best_of(comparison, figure) : nullptr;
        const std::string shown = figure.shown(figure.of(run.result));
        cells.push_back(best == &run ? "<span class=\"best\">" + shown + "</span>" : shown);
      }
      rows += html_row(cells);
      continue;
    }
    rows += fmt::format("<tr><td>{}</td><td colspan=\"{}\"><div class=\"reason\">{}{}</div></td></tr>\n",
                        plain_html(run.policy), named + policy_figures().size() - 1,
                        comparison.over.empty() ? "" : plain_html(comparison.over + "=" + run.value + ": "),
                        plain_html(run.why_not));
  }
  return html_section("All numbers", "Why a policy has none stands in its row. In bold: the best of a column.",
                      "<div class=\"scrolls\" tabindex=\"0\" role=\"group\" aria-label=\"table\"><table>\n" + rows +
                          "</table></div>\n");
}

}  // namespace

std::string policies_html(const PolicyComparison& comparison) {
  std::string body, constants;
  if (!comparison.over.empty()) {
    body = over_values(comparison, constants);
  } else {
    if (!comparison.largest.empty()) body = largest_bars(comparison);
    for (const Chart& chart : charts_of(comparison)) body += bar_section(comparison, chart, constants);
  }
  if (!constants.empty())
    body += html_section("The same for all", "What all policies that ran have alike is not drawn.",
                         "<p>" + plain_html(constants) + "</p>\n");
  const std::string name = comparison.scenario.substr(comparison.scenario.rfind('/') + 1);
  return html_page(
      {.title = "Policies: " + name,
       .subtitle = comparison.machine + ", simulated" + (comparison.over.empty() ? "" : ", by " + comparison.over),
       .headline = policies_sentence(comparison),
       .body = "<div class=\"charts\">\n" + body + "</div>\n" + table(comparison),
       .origin = origin_html(comparison.origin)});
}

}  // namespace tandem
