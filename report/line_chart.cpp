// Line charts: who is better where, over the values of a key.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "report/chart_parts.hpp"
#include "report/charts.hpp"
#include "report/html_page.hpp"

namespace tandem {
namespace {

constexpr double kBelow = 46, kLine = 18, kTop = 12, kHeight = 260;

// A narrow page has the names of lines below them.
struct LineLayout {
  const char* kind;
  double width, left, right;
  bool names_below;
};
constexpr LineLayout kRoomy{"roomy", kChartWidth, 76, kChartWidth - 200, false}, kNarrow{"narrow", 360, 62, 346, true};

// Where a line chart's places lie, from 0 to 1.
std::vector<double> places(const std::vector<std::string>& x) {
  std::vector<double> at;
  for (const std::string& words : x) {
    double number = 0;
    const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
    if (error != std::errc() || end != words.data() + words.size() || (!at.empty() && number <= at.back())) break;
    at.push_back(number);
  }
  if (at.size() < x.size()) {
    at.clear();
    for (std::size_t i = 0; i < x.size(); ++i) at.push_back(static_cast<double>(i));
  }
  // Values that double from place to place would lie upon each other at one end.
  constexpr double kWide = 8;
  if (!at.empty() && at.front() > 0 && at.back() >= kWide * at.front())
    for (double& place : at) place = std::log(place);
  const double first = at.empty() ? 0 : at.front(), span = at.size() > 1 ? at.back() - first : 0;
  for (double& place : at) place = span > 0 ? (place - first) / span : 0.5;
  return at;
}

// The series with the best value of a place; none: no value, or nothing is better.
std::optional<std::size_t> best_at(const LineChart& chart, std::size_t at) {
  std::optional<std::size_t> best;
  if (!chart.more_is_better) return best;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const auto& value = chart.series[i].values[at];
    if (!value) continue;
    const double than = best ? *chart.series[*best].values[at] : 0;
    if (!best || (*chart.more_is_better ? *value > than : *value < than)) best = i;
  }
  return best;
}

class LinePlot {
 public:
  LinePlot(const LineChart& chart, const LineLayout& layout)
      : chart_(chart), layout_(layout), places_(places(chart.x)) {
    double most = 0;
    for (const auto& series : chart.series)
      for (const auto& value : series.values) most = std::max(most, value.value_or(0));
    ticks_ = ticks_to(most);
  }

  std::string axes() const {
    std::string drawn;
    for (const double tick : ticks_) {
      drawn += svg_line(left(), y(tick), right(), y(tick));
      drawn += svg_text("end", left() - 8, y(tick) + 4, short_number(tick));
    }
    const double room = (right() - left()) / static_cast<double>(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      drawn += svg_line(x(i), kTop, x(i), kTop + kHeight);
      drawn += svg_text_within(room, "middle", x(i), kTop + kHeight + kLine, chart_.x[i]);
    }
    drawn += svg_text("middle", (left() + right()) / 2, kTop + kHeight + 2 * kLine + 4, chart_.x_axis);
    return drawn + svg_upright_text(16, kTop + kHeight / 2, chart_.y_axis);
  }

  std::string series(std::size_t i) {
    const bool rest = i >= kShownLines;
    return fmt::format("<g class=\"series{}\"{} role=\"img\" aria-label=\"{}\">\n", rest ? " rest" : "",
                       rest ? " tabindex=\"0\"" : "", plain_html(said(i))) +
           line(i) + dots(i) + ends(i, rest) + key(i) + "</g>\n";
  }

  double height() const {
    return std::max(kTop + kHeight + kBelow, names_from() + kLine * static_cast<double>(chart_.series.size() + 1));
  }

 private:
  double names_from() const { return layout_.names_below ? kTop + kHeight + kBelow : kTop; }
  double left() const { return layout_.left; }
  double right() const { return layout_.right; }
  double x(std::size_t i) const {
    constexpr double kMargin = 24;
    return left() + kMargin + places_[i] * (right() - left() - 2 * kMargin);
  }
  double y(double value) const { return kTop + kHeight * (1 - value / ticks_.back()); }
  std::size_t style(std::size_t i) const { return chart_.series[i].style.value_or(i); }
  // Lines that cover each other show by their dashes.
  static const char* dash(std::size_t i) {
    constexpr std::array kDashes{"none", "9 5", "3 4", "12 4 3 4"};
    return kDashes[i % kDashes.size()];
  }

  std::string said(std::size_t i) const {
    const LineChart::Series& of = chart_.series[i];
    std::string text = of.name + ":";
    for (std::size_t at = 0; at < of.values.size(); ++at)
      text += fmt::format(" {} {}{}", chart_.x[at],
                          of.values[at]            ? short_number(*of.values[at])
                          : at < of.instead.size() ? of.instead[at]
                                                   : "none",
                          at + 1 < of.values.size() ? "," : "");
    return text;
  }

  std::string line(std::size_t i) const {
    const LineChart::Series& of = chart_.series[i];
    std::string points, drawn;
    for (std::size_t at = 0; at <= of.values.size(); ++at) {
      if (at < of.values.size() && of.values[at]) {
        points += fmt::format("{:.1f},{:.1f} ", x(at), y(*of.values[at]));
        continue;
      }
      if (!points.empty())
        drawn += fmt::format("<polyline style=\"stroke:{};stroke-dasharray:{}\" points=\"{}\"/>\n",
                             series_colour(style(i)), dash(style(i)), points);
      points.clear();
    }
    return drawn;
  }

  std::string dots(std::size_t i) const {
    const LineChart::Series& of = chart_.series[i];
    std::string drawn;
    for (std::size_t at = 0; at < of.values.size(); ++at) {
      if (!of.values[at]) continue;
      const bool best = best_at(chart_, at) == i;
      drawn += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" style=\"fill:{}{}\"><title>{}, {}: {}{}</title></circle>\n",
          x(at), y(*of.values[at]), best ? 6 : 4, series_colour(style(i)),
          best ? ";stroke:var(--ink);stroke-width:2" : "", plain_html(of.name), plain_html(chart_.x[at]),
          short_number(*of.values[at]), best ? ", the best" : "");
    }
    return drawn;
  }

  // A cross where the next value would stand, with the reason where there is room for it.
  std::string ends(std::size_t i, bool rest) {
    const LineChart::Series& of = chart_.series[i];
    std::string drawn;
    for (std::size_t at = 1; at < of.values.size() && at < of.instead.size(); ++at) {
      if (of.values[at] || !of.values[at - 1] || of.instead[at].empty()) continue;
      const double to_x = x(at), to_y = y(*of.values[at - 1]);
      drawn += fmt::format(
          "<path class=\"ends\" d=\"M{0:.1f} {1:.1f}l8 8m-8 0l8 -8\"><title>{2}, {3}: {4}</title></path>"
          "<path class=\"ends\" style=\"stroke-dasharray:2 4;stroke-width:1\" d=\"M{5:.1f} {6:.1f}H{7:.1f}\"/>\n",
          to_x - 4, to_y - 4, plain_html(of.name), plain_html(chart_.x[at]), plain_html(of.instead[at]), x(at - 1),
          to_y, to_x - 6);
      const double word_y = to_y - 8;
      const bool taken = std::any_of(words_.begin(), words_.end(), [&](const auto& word) {
        return std::abs(word.first - to_x) < 60 && std::abs(word.second - word_y) < 22;
      });
      if (taken && !rest) continue;
      if (!rest) words_.emplace_back(to_x, word_y);
      drawn += svg_text(to_x > right() - 60 ? "end" : "middle", to_x > right() - 60 ? to_x + 6 : to_x, word_y,
                        of.instead[at], "ends-word");
    }
    return drawn;
  }

  std::string key(std::size_t i) const {
    const double at = names_from() + kLine * (static_cast<double>(i) + 0.5);
    const double mark = layout_.names_below ? 8 : right() + 18;
    return fmt::format(
               "<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" "
               "style=\"stroke:{3};stroke-width:2;stroke-dasharray:{4}\"/>\n",
               mark, mark + 26, at, series_colour(style(i)), dash(style(i))) +
           svg_text_within(layout_.width - mark - 36, "start", mark + 32, at + 4, chart_.series[i].name, "name");
  }

  const LineChart& chart_;
  const LineLayout& layout_;
  std::vector<double> places_, ticks_;
  std::vector<std::pair<double, double>> words_;  // where reasons stand
};

}  // namespace

std::string drop_equal(std::vector<LineChart::Series>& series) {
  std::string text;
  std::vector<LineChart::Series> kept;
  for (LineChart::Series& one : series) {
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const LineChart::Series& other) {
      return other.values == one.values && other.instead == one.instead;
    });
    if (same == kept.end())
      kept.push_back(std::move(one));
    else
      text += fmt::format("{}{} as {}", text.empty() ? "The same line: " : ", ", one.name, same->name);
  }
  series = std::move(kept);
  return text.empty() ? "" : text + ".";
}

void best_first(LineChart& chart) {
  std::vector<std::size_t> wins(chart.series.size(), 0), order(chart.series.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (std::size_t i = 0; chart.more_is_better && i < order.size(); ++i)
    for (std::size_t at = 0; at < chart.x.size(); ++at)
      for (const LineChart::Series& other : chart.series) {
        const auto &mine = chart.series[i].values[at], &its = other.values[at];
        if (mine && its && (*chart.more_is_better ? *mine > *its : *mine < *its)) ++wins[i];
      }
  const auto count = [&](std::size_t i) {
    return std::count_if(chart.series[i].values.begin(), chart.series[i].values.end(),
                         [](const auto& value) { return value.has_value(); });
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return count(a) != count(b) ? count(a) > count(b) : wins[a] > wins[b];
  });
  std::vector<LineChart::Series> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(chart.series[i]));
  chart.series = std::move(sorted);
}

namespace {

std::string picture(const LineChart& chart, const std::string& label, const LineLayout& layout) {
  LinePlot plot(chart, layout);
  std::string drawn = plot.axes();
  // The first ones lie on top.
  std::vector<std::string> all;
  for (std::size_t i = 0; i < chart.series.size(); ++i) all.push_back(plot.series(i));
  for (std::size_t i = all.size(); i-- > 0;) drawn += all[i];
  return svg_picture(layout.width, plot.height(), label, drawn, "group", layout.kind);
}

}  // namespace

std::string svg(const LineChart& chart) {
  const std::string label = chart.y_axis + " over " + chart.x_axis;
  return svg_frame(label, picture(chart, label, kRoomy) + picture(chart, label, kNarrow));
}

}  // namespace tandem
