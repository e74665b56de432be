#include "report/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "report/chart_parts.hpp"
#include "report/html_page.hpp"
#include "report/summary.hpp"
#include "report/wrap.hpp"

namespace tandem {
namespace {

constexpr double kLetter = 7.4;  // is wide

}  // namespace

std::string short_number(double value) {
  if (value == 0) return "0";
  return value >= 99.95 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string svg_text(const char* anchor, double x, double y, const std::string& words, const char* kind) {
  return fmt::format("<text class=\"{}\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kind, anchor, x, y,
                     plain_html(words));
}

std::string svg_text_within(double room, const char* anchor, double x, double y, const std::string& words,
                            const char* kind) {
  const std::string plain = terminal_text(words);
  const auto letters = static_cast<std::size_t>(std::max(1.0, room / kLetter));
  if (columns_of(plain) <= letters) return svg_text(anchor, x, y, words, kind);
  return fmt::format("<g>{}<title>{}</title></g>\n",
                     svg_text(anchor, x, y, first_columns(plain, letters - 1) + "…", kind), plain_html(words));
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

std::string svg_picture(double width, double height, const std::string& label, const std::string& content,
                        const char* role, const char* kind) {
  return fmt::format("<svg class=\"plot {}\" role=\"{}\" aria-label=\"{}\" viewBox=\"0 0 {:.0f} {:.0f}\">\n{}</svg>",
                     kind, role, plain_html(label), width, height, content);
}

std::string svg_frame(const std::string& label, const std::string& pictures) {
  return fmt::format("<div class=\"chart\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}</div>\n",
                     plain_html(label), pictures);
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
constexpr double kRight = 60, kBelow = 46, kLine = 18, kBar = 13, kGap = 9;

// Where bars begin, and what a name takes above them; 0: it stands at their left.
struct BarLayout {
  const char* kind;
  double width, left, above;
};
constexpr BarLayout kNarrow{"narrow", 360, 10, kLine};

BarLayout roomy(const BarChart& chart) {
  constexpr double kLeast = 110, kMost = 260;
  std::size_t longest = 0;
  for (const BarChart::Row& row : chart.rows) longest = std::max(longest, columns_of(row.label) + 2);
  return {"roomy", kChartWidth, std::clamp(8 + kLetter * static_cast<double>(longest), kLeast, kMost), 0};
}

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

std::string bars(const BarChart::Row& row, const std::vector<std::string>& series, double left, double y,
                 double scale) {
  std::string drawn;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    if (!row.values[i]) continue;
    const double width = *row.values[i] * scale, top = y + kBar * static_cast<double>(i);
    drawn += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" "
        "style=\"fill:{}\"><title>{}{}</title></rect>\n",
        left, top, std::max(width, 0.5), kBar - 2, colour(i), plain_html(row.label),
        series.size() > 1 ? ", " + plain_html(series[i]) : "");
    // What is too short to be seen has no digits that matter.
    drawn += svg_text("start", left + width + 5, top + kBar - 3,
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

std::string name_of_row(const BarChart::Row& row, const BarLayout& at, double y, double row_height) {
  const std::string name = (row.best ? "★ " : "") + row.label;
  const char* kind = row.best ? "name best" : "name";
  if (at.above > 0) return svg_text_within(at.width - at.left, "start", at.left, y + at.above - 5, name, kind);
  return svg_text_within(at.left - 8, "end", at.left - 8, y + row_height / 2 + 4, name, kind);
}

std::string picture(const BarChart& chart, const BarLayout& at) {
  double most = 0;
  for (const BarChart::Row& row : chart.rows) most = std::max(most, largest(row.values));
  const std::vector<double> ticks = ticks_to(most);
  const double scale = (at.width - at.left - kRight) / ticks.back(),
               row_height = kBar * static_cast<double>(chart.series.size()),
               bottom = (at.above + row_height + kGap) * static_cast<double>(chart.rows.size()) + kGap;
  std::string drawn;
  for (const double tick : ticks) {
    drawn += svg_line(at.left + tick * scale, 0, at.left + tick * scale, bottom);
    drawn += svg_text("middle", at.left + tick * scale, bottom + kLine, short_number(tick));
  }
  drawn += svg_text("middle", (at.left + at.width - kRight) / 2, bottom + 2 * kLine + 2, chart.axis);
  double y = kGap;
  for (const BarChart::Row& row : chart.rows) {
    drawn += name_of_row(row, at, y, row_height);
    y += at.above;
    drawn += bars(row, chart.series, at.left, y, scale);
    if (row.values.empty()) drawn += svg_text("start", at.left + 5, y + row_height / 2 + 4, row.instead);
    y += row_height + kGap;
  }
  return svg_picture(at.width, bottom + kBelow, chart.axis, drawn, "img", at.kind);
}

}  // namespace

std::string svg(const BarChart& chart) {
  return svg_frame(chart.axis, picture(chart, roomy(chart)) + picture(chart, kNarrow)) +
         (chart.series.size() > 1 ? legend_line(chart.series) : "");
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
