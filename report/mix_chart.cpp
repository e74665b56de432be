#include "report/mix_chart.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/chart_parts.hpp"
#include "report/html_page.hpp"
#include "report/wrap.hpp"

namespace tandem {
namespace {

constexpr double kLeft = 64, kTop = 12, kRight = 14, kLine = 18, kLetter = 7.4, kStrip = 20;

std::string colour(std::size_t line) { return fmt::format("var(--series{})", line % 10); }

class Plot {
 public:
  Plot(const MixChart& chart, double width) : chart_(chart), width_(width), height_(width < 500 ? 260 : 320) {
    double most = 0;
    for (const MixChart::Line& line : chart.lines)
      for (const auto& y : line.y) most = std::max(most, y.value_or(0));
    ticks_ = ticks_to(most);
  }
  double height() const { return bottom() + kLine + kStrip + 2 * kLine; }

  std::string drawn() const {
    std::string text = axes();
    for (std::size_t i = 1; i < chart_.bands.size(); ++i)
      text += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" "
          "style=\"stroke:var(--ink);stroke-dasharray:2 3\"><title>flips at {3:.3g}</title></line>\n",
          x(chart_.bands[i].from), kTop, strip() + kStrip, chart_.bands[i].from);
    // The first ones lie on top: their dashes show what they cover.
    for (std::size_t i = chart_.lines.size(); i-- > 0;) text += line(i);
    for (const MixChart::Band& of : chart_.bands) text += band(of);
    return text;
  }

 private:
  double right() const { return width_ - kRight; }
  double bottom() const { return kTop + height_; }
  double strip() const { return bottom() + kLine + 6; }
  double x(double value) const {
    const double low = chart_.x.front(), span = chart_.x.back() - low;
    return kLeft + (right() - kLeft) * (span > 0 ? (value - low) / span : 0.5);
  }
  double y(double value) const { return bottom() - height_ * value / ticks_.back(); }

  std::string axes() const {
    std::string text;
    for (const double tick : ticks_)
      text += svg_line(kLeft, y(tick), right(), y(tick)) + svg_text("end", kLeft - 6, y(tick) + 4, short_number(tick));
    double free = 0;  // numbers keep clear of each other
    for (const double value : chart_.x) {
      const std::string words = fmt::format("{:.3g}", value);
      text += svg_line(x(value), kTop, x(value), bottom());
      const double half = kLetter * static_cast<double>(columns_of(words)) / 2;
      if (x(value) - half < free) continue;
      free = x(value) + half + 6;
      text += svg_text("middle", x(value), bottom() + kLine - 3, words);
    }
    return text + svg_text("middle", (kLeft + right()) / 2, strip() + kStrip + kLine, chart_.x_axis) +
           svg_upright_text(12, kTop + height_ / 2, chart_.y_axis) + svg_text("end", kLeft - 6, strip() + 14, "best");
  }

  std::string line(std::size_t i) const {
    const MixChart::Line& of = chart_.lines[i];
    std::string points, dots, text;
    const auto end = [&] {
      if (!points.empty())
        text += fmt::format("<polyline style=\"stroke:{};stroke-dasharray:{};stroke-dashoffset:{}\" points=\"{}\"/>\n",
                            colour(i), of.dashed ? "6 6" : "none", 6 * i, points);
      points.clear();
    };
    for (std::size_t at = 0; at < of.y.size(); ++at) {
      if (!of.y[at]) {
        end();
        continue;
      }
      points += fmt::format("{:.1f},{:.1f} ", x(chart_.x[at]), y(*of.y[at]));
      dots += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" style=\"fill:{}\"><title>{}, {:.3g}: {}</title></circle>\n",
          x(chart_.x[at]), y(*of.y[at]), of.dashed ? 2.5 : 3.5, colour(i), plain_html(of.name), chart_.x[at],
          short_number(*of.y[at]));
    }
    end();
    return text + dots;
  }

  // Its name stands in it where there is room.
  std::string band(const MixChart::Band& of) const {
    const std::string& name = chart_.lines[of.line].name;
    const double left = x(of.from), wide = x(of.to) - left;
    std::string text = fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "style=\"fill:{};fill-opacity:0.3\"><title>{}: {:.3g} to {:.3g}</title></rect>\n",
        left, strip(), std::max(wide, 1.0), kStrip, colour(of.line), plain_html(name), of.from, of.to);
    if (kLetter * static_cast<double>(columns_of(name)) + 6 < wide)
      text += svg_text("middle", left + wide / 2, strip() + 14, name, "name");
    return text;
  }

  const MixChart& chart_;
  double width_, height_;
  std::vector<double> ticks_;
};

}  // namespace

std::string svg(const MixChart& chart, double width) {
  const Plot plot(chart, width);
  return fmt::format(
      "<svg class=\"plot {}\" role=\"img\" aria-label=\"{} over {}\" viewBox=\"0 0 {:.0f} {:.0f}\">\n{}</svg>\n",
      width < 500 ? "narrow" : "roomy", plain_html(chart.y_axis), plain_html(chart.x_axis), width, plot.height(),
      plot.drawn());
}

}  // namespace tandem
