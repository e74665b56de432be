#include "report/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "report/chart_parts.hpp"
#include "report/html_page.hpp"

namespace tandem {

std::string short_number(double value) {
  if (value == 0) return "0";
  return value >= 99.95 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string svg_text(const char* anchor, double x, double y, const std::string& words, const char* kind) {
  return fmt::format("<text class=\"{}\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kind, anchor, x, y,
                     plain_html(words));
}

std::string svg_upright_text(double x, double y, const std::string& words) {
  return fmt::format("<text text-anchor=\"middle\" transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}</text>\n", x,
                     y, plain_html(words));
}

std::string svg_line(double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", x1, y1, x2,
                     y2);
}

std::string svg_frame(double height, const std::string& content) {
  return fmt::format("<svg class=\"plot\" role=\"img\" viewBox=\"0 0 {} {:.0f}\">\n{}</svg>\n", kChartWidth, height,
                     content);
}

std::vector<double> ticks_to(double most) {
  if (!(most > 0)) most = 1;
  const double raw = most / 5, power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double digit : {5.0, 2.0, 1.0})
    if (digit * power >= raw * 0.999) step = digit * power;
  std::vector<double> ticks{0};
  while (ticks.back() < most * 0.999) ticks.push_back(step * static_cast<double>(ticks.size()));
  return ticks;
}

namespace {

// Of both kinds of charts, in units of their own.
constexpr double kWidth = kChartWidth, kLeft = 150, kRight = 60, kBelow = 46, kLine = 18;
constexpr double kBar = 13, kGap = 9;                                   // of a bar chart
constexpr double kTop = 12, kHeight = 260, kYAxis = 76, kLegend = 200;  // of a line chart
constexpr int kColours = 10;                                            // the style's series0 to series9

std::string colour(std::size_t series) { return fmt::format("var(--series{})", series % kColours); }

double largest(const Points& values) {
  double most = 0;
  for (const auto& value : values) most = std::max(most, value.value_or(0));
  return most;
}

Unit unit_for(double most, std::span<const Unit> units) {
  Unit chosen = units.front();
  for (const Unit& unit : units)
    if (most >= unit.size) chosen = unit;
  return chosen;
}

std::string bars(const BarChart::Row& row, const std::vector<std::string>& series, double y, double scale) {
  std::string drawn;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    if (!row.values[i]) continue;
    const double width = *row.values[i] * scale, top = y + kBar * static_cast<double>(i);
    drawn += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" "
        "style=\"fill:{}\"><title>{}{}</title></rect>\n",
        kLeft, top, std::max(width, 0.5), kBar - 2, colour(i), plain_html(row.label),
        series.size() > 1 ? ", " + plain_html(series[i]) : "");
    // What is too short to be seen has no digits that matter.
    drawn += svg_text("start", kLeft + width + 5, top + kBar - 3,
                      width < 0.1 ? (width > 0 ? "~0" : "0") : short_number(*row.values[i]));
  }
  return drawn;
}

std::string legend_line(const std::vector<std::string>& names) {
  std::string marks = "<div class=\"legend\">";
  for (std::size_t i = 0; i < names.size(); ++i)
    marks += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", colour(i), plain_html(names[i]));
  return marks + "</div>\n";
}

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
  const double first = at.empty() ? 0 : at.front(), span = at.size() > 1 ? at.back() - first : 0;
  for (double& place : at) place = span > 0 ? (place - first) / span : 0.5;
  return at;
}

class LinePlot {
 public:
  explicit LinePlot(const LineChart& chart) : chart_(chart), places_(places(chart.x)) {
    double most = 0;
    for (const auto& series : chart.series) most = std::max(most, largest(series.values));
    ticks_ = ticks_to(most);
  }

  std::string axes() const {
    std::string drawn;
    for (const double tick : ticks_) {
      drawn += svg_line(kYAxis, y(tick), right(), y(tick));
      drawn += svg_text("end", kYAxis - 8, y(tick) + 4, short_number(tick));
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      drawn += svg_line(x(i), kTop, x(i), kTop + kHeight);
      drawn += svg_text("middle", x(i), kTop + kHeight + kLine, chart_.x[i]);
    }
    drawn += svg_text("middle", (kYAxis + right()) / 2, kTop + kHeight + 2 * kLine + 4, chart_.x_axis);
    return drawn + svg_upright_text(16, kTop + kHeight / 2, chart_.y_axis);
  }

  // Lines that cover each other show by their dashes.
  std::string lines(std::size_t i) const {
    const LineChart::Series& series = chart_.series[i];
    constexpr std::array kDashes{"none", "9 5", "3 4", "12 4 3 4"};
    std::string points, dots, drawn;
    const auto end_line = [&] {
      if (!points.empty())
        drawn += fmt::format("<polyline style=\"stroke:{};stroke-dasharray:{}\" points=\"{}\"/>\n", colour(i),
                             kDashes[i % kDashes.size()], points);
      points.clear();
    };
    for (std::size_t at = 0; at < series.values.size(); ++at) {
      if (!series.values[at]) {
        end_line();
        continue;
      }
      points += fmt::format("{:.1f},{:.1f} ", x(at), y(*series.values[at]));
      dots += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" style=\"fill:{}\"><title>{}, {}: {}</title></circle>\n", x(at),
          y(*series.values[at]), colour(i), plain_html(series.name), plain_html(chart_.x[at]),
          short_number(*series.values[at]));
    }
    end_line();
    const double key = kTop + kLine * (static_cast<double>(i) + 0.5);
    return drawn + dots +
           fmt::format(
               "<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" "
               "style=\"stroke:{3};stroke-width:2;stroke-dasharray:{4}\"/>\n",
               right() + 18, right() + 44, key, colour(i), kDashes[i % kDashes.size()]) +
           svg_text("start", right() + 50, key + 4, series.name, "name");
  }

 private:
  static double right() { return kWidth - kLegend; }
  double x(std::size_t i) const {
    constexpr double kMargin = 24;
    return kYAxis + kMargin + places_[i] * (right() - kYAxis - 2 * kMargin);
  }
  double y(double value) const { return kTop + kHeight * (1 - value / ticks_.back()); }

  const LineChart& chart_;
  std::vector<double> places_, ticks_;
};

}  // namespace

std::string svg(const BarChart& chart) {
  double most = 0;
  for (const BarChart::Row& row : chart.rows) most = std::max(most, largest(row.values));
  const std::vector<double> ticks = ticks_to(most);
  const double scale = (kWidth - kLeft - kRight) / ticks.back(),
               row_height = kBar * static_cast<double>(chart.series.size()),
               bottom = (row_height + kGap) * static_cast<double>(chart.rows.size()) + kGap;
  std::string drawn;
  for (const double tick : ticks) {
    drawn += svg_line(kLeft + tick * scale, 0, kLeft + tick * scale, bottom);
    drawn += svg_text("middle", kLeft + tick * scale, bottom + kLine, short_number(tick));
  }
  drawn += svg_text("middle", (kLeft + kWidth - kRight) / 2, bottom + 2 * kLine + 2, chart.axis);
  double y = kGap;
  for (const BarChart::Row& row : chart.rows) {
    drawn += svg_text("end", kLeft - 8, y + row_height / 2 + 4, row.label, "name");
    drawn += bars(row, chart.series, y, scale);
    if (row.values.empty()) drawn += svg_text("start", kLeft + 5, y + row_height / 2 + 4, row.instead);
    y += row_height + kGap;
  }
  return svg_frame(bottom + kBelow, drawn) + (chart.series.size() > 1 ? legend_line(chart.series) : "");
}

std::string svg(const LineChart& chart) {
  const LinePlot plot(chart);
  std::string drawn = plot.axes();
  for (std::size_t i = 0; i < chart.series.size(); ++i) drawn += plot.lines(i);
  const double legend = kTop + kLine * static_cast<double>(chart.series.size() + 1);
  return svg_frame(std::max(kTop + kHeight + kBelow, legend), drawn);
}

Unit time_unit(double most_s) {
  static const std::array kUnits{Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};
  return unit_for(most_s, kUnits);
}

Unit byte_unit(double most_bytes) {
  static const std::array kUnits{Unit{"B", 1}, Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30},
                                 Unit{"TiB", 0x1p40}};
  return unit_for(most_bytes, kUnits);
}

Unit count_unit(double most) {
  static const std::array kUnits{Unit{"", 1}, Unit{"thousands of ", 1e3}, Unit{"millions of ", 1e6},
                                 Unit{"billions of ", 1e9}, Unit{"trillions of ", 1e12}};
  return unit_for(most, kUnits);
}

}  // namespace tandem
