#include "report/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

std::string series_colour(std::size_t series) {
  constexpr std::size_t kColours = 10;  // the style's series0 to series9
  return fmt::format("var(--series{})", series % kColours);
}

std::string svg_frame(double height, const std::string& label, const std::string& content, const char* role) {
  const std::string named = plain_html(label);
  return fmt::format(
      "<div class=\"chart\" tabindex=\"0\" role=\"group\" aria-label=\"{0}\"><svg class=\"plot\" role=\"{1}\" "
      "aria-label=\"{0}\" viewBox=\"0 0 {2} {3:.0f}\">\n{4}</svg></div>\n",
      named, role, kChartWidth, height, content);
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

// In units of the chart's own.
constexpr double kWidth = kChartWidth, kLeft = 170, kRight = 60, kBelow = 46, kLine = 18, kBar = 13, kGap = 9;

std::string colour(std::size_t series) { return series_colour(series); }

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
    drawn += svg_text("end", kLeft - 8, y + row_height / 2 + 4, (row.best ? "★ " : "") + row.label,
                      row.best ? "name best" : "name");
    drawn += bars(row, chart.series, y, scale);
    if (row.values.empty()) drawn += svg_text("start", kLeft + 5, y + row_height / 2 + 4, row.instead);
    y += row_height + kGap;
  }
  return svg_frame(bottom + kBelow, chart.axis, drawn) + (chart.series.size() > 1 ? legend_line(chart.series) : "");
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
