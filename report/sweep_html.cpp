// A sweep as a page: lines over each key, heat maps over each pair of keys, Pareto fronts, and all numbers.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "report/charts.hpp"
#include "report/html_page.hpp"
#include "report/origin.hpp"
#include "report/sweep_table.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostLines = 12, kMostPlaces = 60, kMostRows = 2000;

bool is_bytes(const std::string& figure) { return figure.find("bytes") != std::string::npos; }

// The unit of a figure whose largest value is `most`, and its axis' title.
struct Scale {
  Unit unit;
  std::string title;
};
Scale scale_of(const SweepTable& table, const std::string& figure) {
  double most = 0;
  for (const SweepRow& row : table.rows)
    if (row.counts()) most = std::max(most, figure_of(row, figure));
  const std::string words = policy_figure(figure).words;
  if (figure == "step_s") return {time_unit(most), words + ", " + time_unit(most).name};
  if (is_bytes(figure)) return {byte_unit(most), words + ", " + byte_unit(most).name};
  if (figure.find("share") != std::string::npos || figure.starts_with("above")) return {{"%", 0.01}, words + ", %"};
  return {count_unit(most), count_unit(most).name + words};
}

// The best of those rows, in the scale's unit.
std::optional<double> best_of(const SweepTable& table, const std::string& figure, const Scale& scale,
                              const std::function<bool(const SweepRow&)>& is_one) {
  std::optional<double> best;
  for (const SweepRow& row : table.rows) {
    if (!row.counts() || !is_one(row)) continue;
    const double value = figure_of(row, figure) / scale.unit.size;
    if (!best || (policy_figure(figure).more_is_better ? value > *best : value < *best)) best = value;
  }
  return best;
}

std::string best_over(const SweepTable& table, std::size_t shown) {
  return table.axes.size() > shown ? "The best over all other keys." : "Each combination.";
}

// Over one key, a line a value of another with few of them.
std::string line_section(const SweepTable& table, const std::string& figure, std::size_t x) {
  const Scale scale = scale_of(table, figure);
  std::size_t lines = table.axes.size();
  for (std::size_t a = table.axes.size(); a-- > 0;)
    if (a != x && table.axes[a].values.size() <= kMostLines) lines = a;
  LineChart chart{table.axes[x].name, scale.title, table.axes[x].values, {}, policy_figure(figure).more_is_better};
  const auto add = [&](const std::string& name, const std::function<bool(const SweepRow&)>& is_one) {
    LineChart::Series series{name, {}, {}, {}};
    for (std::size_t at = 0; at < table.axes[x].values.size(); ++at)
      series.values.push_back(
          best_of(table, figure, scale, [&](const SweepRow& row) { return row.at[x] == at && is_one(row); }));
    if (std::any_of(series.values.begin(), series.values.end(), [](const auto& value) { return value.has_value(); }))
      chart.series.push_back(std::move(series));
  };
  if (lines == table.axes.size()) {
    add("best", [](const SweepRow&) { return true; });
  } else {
    for (std::size_t v = 0; v < table.axes[lines].values.size(); ++v)
      add(table.axes[lines].values[v], [&, v](const SweepRow& row) { return row.at[lines] == v; });
  }
  const std::string same = drop_equal(chart.series);
  best_first(chart);
  std::string note = best_over(table, lines == table.axes.size() ? 1 : 2);
  if (chart.series.size() > kShownLines)
    note += fmt::format(" {} lines are drawn; point at another name, or tab to it, to see its line.", kShownLines);
  if (!same.empty()) note += " " + plain_html(same);
  return html_section(policy_figure(figure).words + (" by " + plain_html(table.axes[x].name)), note, svg(chart));
}

std::string heat_section(const SweepTable& table, const std::string& figure, std::size_t y, std::size_t x) {
  const Scale scale = scale_of(table, figure);
  HeatMap map{
      table.axes[x].name, table.axes[y].name, scale.title, table.axes[x].values, table.axes[y].values, {}, "none"};
  for (std::size_t row = 0; row < map.y.size(); ++row) {
    map.rows.emplace_back();
    for (std::size_t column = 0; column < map.x.size(); ++column)
      map.rows.back().push_back(
          best_of(table, figure, scale, [&](const SweepRow& r) { return r.at[y] == row && r.at[x] == column; }));
  }
  return html_section(plain_html(scale.title), "The darker, the more. " + best_over(table, 2), svg(map));
}

std::string values_text(const SweepTable& table, const SweepRow& row) {
  std::string text;
  for (std::size_t a = 0; a < table.axes.size(); ++a)
    text += (a > 0 ? ", " : "") + table.axes[a].name + " " + table.axes[a].values[row.at[a]];
  return text;
}

std::string front_section(const SweepTable& table, const std::string& a, const std::string& b) {
  const Scale x = scale_of(table, b), y = scale_of(table, a);
  ScatterChart chart{x.title, y.title, {}};
  const auto add = [&](const SweepRow& row, bool on_front) {
    chart.dots.push_back({figure_of(row, b) / x.unit.size, figure_of(row, a) / y.unit.size,
                          fmt::format("{}: {}, {}", values_text(table, row), policy_figure(a).shown(figure_of(row, a)),
                                      policy_figure(b).shown(figure_of(row, b))),
                          on_front});
  };
  const std::vector<const SweepRow*> front = front_of(table, a, b);
  for (const SweepRow& row : table.rows)
    if (row.counts() && std::find(front.begin(), front.end(), &row) == front.end()) add(row, false);
  std::string rows = html_row({"combination", policy_figure(a).words, policy_figure(b).words}, "th");
  for (const SweepRow* row : front) {
    add(*row, true);
    rows += html_row({plain_html(values_text(table, *row)), policy_figure(a).shown(figure_of(*row, a)),
                      policy_figure(b).shown(figure_of(*row, b))});
  }
  return html_section(std::string("Pareto front: ") + policy_figure(a).words + " and " + policy_figure(b).words,
                      "No other combination is better in one and as good in the other.",
                      svg(chart) + "<table>\n" + rows + "</table>\n");
}

std::string all_rows(const SweepTable& table) {
  std::vector<std::string> heads;
  for (const SweepTable::Axis& axis : table.axes) heads.push_back(plain_html(axis.name));
  if (!table.largest.empty()) heads.push_back("largest " + plain_html(table.largest));
  for (const PolicyFigure& figure : policy_figures()) heads.emplace_back(figure.words);
  heads.emplace_back("outcome");
  std::string rows = html_row(heads, "th");
  for (std::size_t i = 0; i < std::min(table.rows.size(), kMostRows); ++i) {
    const SweepRow& row = table.rows[i];
    std::vector<std::string> cells;
    for (std::size_t a = 0; a < table.axes.size(); ++a) cells.push_back(plain_html(table.axes[a].values[row.at[a]]));
    if (!table.largest.empty()) cells.push_back(row.largest ? std::to_string(*row.largest) : "");
    for (std::size_t f = 0; f < policy_figures().size(); ++f)
      cells.push_back(row.figures.empty() ? "" : policy_figures()[f].shown(row.figures[f]));
    cells.push_back(fmt::format("<div class=\"reason\">{}</div>", plain_html(outcome_text(row))));
    rows += html_row(cells);
  }
  const std::string note = table.rows.size() > kMostRows
                               ? fmt::format("The first {} of {} rows: --csv has all.", kMostRows, table.rows.size())
                               : "Why a combination has none stands in its row.";
  return html_section("All numbers", note,
                      "<div class=\"scrolls\" tabindex=\"0\" role=\"group\" aria-label=\"table\"><table>\n" + rows +
                          "</table></div>\n");
}

std::string headline(const SweepTable& table) {
  const std::vector<const SweepRow*> best = ranked(table);
  if (best.empty()) return fmt::format("None of {} combinations has a result.", table.combinations);
  const std::string& figure = table.figures.front();
  std::string text = fmt::format("Of {} combinations that count, the best is {}: {} {}", best.size(),
                                 values_text(table, *best.front()), policy_figure(figure).words,
                                 policy_figure(figure).shown(figure_of(*best.front(), figure)));
  if (best.size() > 1)
    text += fmt::format(", where the worst has {}", policy_figure(figure).shown(figure_of(*best.back(), figure)));
  return text + ".";
}

}  // namespace

std::string sweep_html(const SweepTable& table) {
  std::string body;
  const auto few = [&](std::size_t a) { return table.axes[a].values.size() <= kMostPlaces; };
  if (!ranked(table).empty()) {
    for (std::size_t i = 1; i < table.figures.size(); ++i)
      body += front_section(table, table.figures.front(), table.figures[i]);
    for (const std::string& figure : table.figures)
      for (std::size_t x = 0; x < table.axes.size(); ++x)
        if (few(x)) body += line_section(table, figure, x);
    for (std::size_t y = 0; y < table.axes.size(); ++y)
      for (std::size_t x = y + 1; x < table.axes.size(); ++x)
        if (few(x) && few(y)) body += heat_section(table, table.figures.front(), y, x);
  }
  const std::string name = table.scenario.substr(table.scenario.rfind('/') + 1);
  return html_page({.title = "Sweep: " + name,
                    .subtitle = fmt::format("{}, simulated: {} combinations", table.machine, table.combinations),
                    .headline = headline(table),
                    .body = "<div class=\"charts\">\n" + body + "</div>\n" + all_rows(table),
                    .origin = origin_html(table.origin)});
}

}  // namespace tandem
