// Charts over two quantities: heat maps and scatter charts.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "report/chart_parts.hpp"
#include "report/charts.hpp"
#include "report/html_page.hpp"

namespace tandem {
namespace {

constexpr double kTop = 12, kLine = 18, kRight = 20, kNarrowPage = 360;

const char* kind_of(double width) { return width < kChartWidth ? "narrow" : "roomy"; }

struct Range {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  double share(double value) const { return most > least ? (value - least) / (most - least) : 1; }
};

Range range_of(const HeatMap& chart) {
  Range range;
  for (const Points& row : chart.rows)
    for (const auto& value : row)
      if (value) range = {std::min(range.least, *value), std::max(range.most, *value)};
  return range;
}

std::string cell(const HeatMap& chart, std::size_t row, std::size_t column, const Range& range, double x, double y,
                 double width, double height) {
  constexpr double kFaintest = 0.12, kWide = 34;
  const std::optional<double>& value = chart.rows[row][column];
  const std::string words = value ? short_number(*value) : chart.instead;
  std::string drawn = fmt::format(
      "<rect class=\"cell\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" style=\"fill-opacity:{:.3f}\">"
      "<title>{}, {}: {}</title></rect>\n",
      x, y, width, height, value ? kFaintest + (1 - kFaintest) * range.share(*value) * 0.8 : 0.0,
      plain_html(chart.x[column]), plain_html(chart.y[row]), plain_html(words));
  if (width >= kWide && (value || width >= 2 * kWide))
    drawn += svg_text("middle", x + width / 2, y + height / 2 + 4, words, value ? "name" : "");
  return drawn;
}

std::string picture(const HeatMap& chart, const std::string& label, double page_width) {
  constexpr double kHeight = 26, kNarrow = 34;
  const double left = page_width < kChartWidth ? 110 : 150;
  const Range range = range_of(chart);
  const double width = (page_width - left - kRight) / static_cast<double>(chart.x.size()),
               bottom = kTop + kHeight * static_cast<double>(chart.y.size());
  std::string drawn;
  for (std::size_t row = 0; row < chart.y.size(); ++row) {
    const double y = kTop + kHeight * static_cast<double>(row);
    drawn += svg_text_within(left - 34, "end", left - 8, y + kHeight / 2 + 4, chart.y[row], "name");
    for (std::size_t column = 0; column < chart.x.size(); ++column)
      drawn += cell(chart, row, column, range, left + width * static_cast<double>(column), y, width - 1, kHeight - 1);
  }
  // As many names of columns as there is room for.
  const auto every = static_cast<std::size_t>(std::max(1.0, kNarrow / width + 0.999));
  for (std::size_t column = 0; column < chart.x.size(); column += every)
    drawn += svg_text_within(std::max(width, kNarrow) * static_cast<double>(every), "middle",
                             left + width * (static_cast<double>(column) + 0.5), bottom + kLine, chart.x[column]);
  drawn += svg_text("middle", (left + page_width - kRight) / 2, bottom + 2 * kLine + 4, chart.x_axis);
  drawn += svg_upright_text(14, (kTop + bottom) / 2, chart.y_axis);
  return svg_picture(page_width, bottom + 3 * kLine, label, drawn, "img", kind_of(page_width));
}

std::string picture(const ScatterChart& chart, const std::string& label, double page_width) {
  constexpr double kLeft = 76, kHeight = 320;
  double most_x = 0, most_y = 0;
  for (const ScatterChart::Dot& dot : chart.dots) {
    most_x = std::max(most_x, dot.x);
    most_y = std::max(most_y, dot.y);
  }
  const std::vector<double> across = ticks_to(most_x), up = ticks_to(most_y);
  const double bottom = kTop + kHeight, width = page_width - kLeft - kRight;
  const auto x = [&](double value) { return kLeft + width * value / across.back(); };
  const auto y = [&](double value) { return bottom - kHeight * value / up.back(); };
  std::string drawn, front, dots;
  for (const double tick : across)
    drawn += svg_line(x(tick), kTop, x(tick), bottom) + svg_text("middle", x(tick), bottom + kLine, short_number(tick));
  for (const double tick : up)
    drawn +=
        svg_line(kLeft, y(tick), kLeft + width, y(tick)) + svg_text("end", kLeft - 8, y(tick) + 4, short_number(tick));
  for (const ScatterChart::Dot& dot : chart.dots) {
    if (dot.on_front) front += fmt::format("{:.1f},{:.1f} ", x(dot.x), y(dot.y));
    dots += fmt::format("<circle class=\"dot{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{}</title></circle>\n",
                        dot.on_front ? " best" : "", x(dot.x), y(dot.y), dot.on_front ? 5 : 3, plain_html(dot.name));
  }
  drawn += fmt::format("<polyline style=\"stroke:var(--series1)\" points=\"{}\"/>\n", front) + dots;
  drawn += svg_text("middle", kLeft + width / 2, bottom + 2 * kLine + 4, chart.x_axis);
  drawn += svg_upright_text(16, kTop + kHeight / 2, chart.y_axis);
  return svg_picture(page_width, bottom + 3 * kLine, label, drawn, "img", kind_of(page_width));
}

}  // namespace

std::string svg(const HeatMap& chart) {
  const std::string label = chart.value + " by " + chart.y_axis + " and " + chart.x_axis;
  return svg_frame(label, picture(chart, label, kChartWidth) + picture(chart, label, kNarrowPage));
}

std::string svg(const ScatterChart& chart) {
  const std::string label = chart.y_axis + " over " + chart.x_axis;
  return svg_frame(label, picture(chart, label, kChartWidth) + picture(chart, label, kNarrowPage));
}

}  // namespace tandem
