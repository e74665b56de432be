#include "report/roofline_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/units.hpp"
#include "report/chart_parts.hpp"
#include "report/html_page.hpp"
#include "report/wrap.hpp"

namespace tandem {
namespace {

constexpr double kLeft = 58, kTop = 24, kRight = 12, kLine = 18, kLetter = 7.4, kText = 12;

struct Box {
  double x = 0, y = 0, width = 0, height = 0;  // y: of its upper edge
  bool meets(const Box& o) const {
    return x < o.x + o.width && o.x < x + width && y < o.y + o.height && o.y < y + height;
  }
};

struct Axis {
  double low = 0, high = 1;  // powers of ten
  void take(double value) {
    low = std::min(low, std::floor(std::log10(value)));
    high = std::max(high, std::ceil(std::log10(value)));
  }
  double share(double value) const { return (std::log10(value) - low) / (high - low); }
};

class Plot {
 public:
  Plot(const RooflineChart& chart, double width) : chart_(chart), width_(width), height_(width < 500 ? 300 : 380) {
    x_ = y_ = {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    for (const RooflineChart::Roof& roof : chart.roofs) {
      x_.take(roof.flops_per_s / roof.bytes_per_s / 10);
      y_.take(roof.flops_per_s / 10), y_.take(roof.flops_per_s);
    }
    for (const RooflineChart::Dot& dot : chart.dots) x_.take(dot.flops_a_byte), y_.take(dot.flops_per_s);
    for (const RooflineChart::Roof& roof : chart.roofs) x_.take(roof.flops_per_s / roof.bytes_per_s * 10);
    y_.low = std::max(y_.low, y_.high - 8);  // what is slower lies on the axis
  }

  std::string drawn() {
    std::string text = axes();
    for (const RooflineChart::Roof& roof : chart_.roofs) text += roof_line(roof);
    for (const RooflineChart::Dot& dot : chart_.dots) taken_.push_back(box_of(dot));
    for (const RooflineChart::Roof& roof : chart_.roofs) text += roof_name(roof);
    std::string dots, names;
    for (const RooflineChart::Dot& dot : chart_.dots) dots += circle(dot);
    // Where room is short, the largest have their names.
    std::vector<const RooflineChart::Dot*> largest;
    for (const RooflineChart::Dot& dot : chart_.dots) largest.push_back(&dot);
    std::stable_sort(largest.begin(), largest.end(),
                     [](const auto* a, const auto* b) { return a->weight > b->weight; });
    for (const RooflineChart::Dot* dot : largest)
      names += label(dot->name, x(dot->flops_a_byte), y(dot->flops_per_s), radius(*dot));
    return text + dots + names;
  }
  double height() const { return kTop + height_ + 3 * kLine; }

 private:
  double right() const { return width_ - kRight; }
  double bottom() const { return kTop + height_; }
  double x(double value) const { return kLeft + (right() - kLeft) * std::clamp(x_.share(value), 0.0, 1.0); }
  double y(double value) const { return bottom() - height_ * std::clamp(y_.share(value), 0.0, 1.0); }

  std::string axes() const {
    std::string text;
    for (double power = x_.low; power <= x_.high; ++power) {
      const double value = std::pow(10, power);
      text +=
          svg_line(x(value), kTop, x(value), bottom()) +
          svg_text("middle", x(value), bottom() + kLine, power < 0 ? fmt::format("{:g}", value) : format_tick(value));
    }
    for (double power = y_.low; power <= y_.high; ++power) {
      const double value = std::pow(10, power);
      text +=
          svg_line(kLeft, y(value), right(), y(value)) + svg_text("end", kLeft - 6, y(value) + 4, format_tick(value));
    }
    return text + svg_text("middle", (kLeft + right()) / 2, bottom() + 2 * kLine + 4, "flops a byte") +
           svg_upright_text(12, kTop + height_ / 2, "flops a second");
  }
  // "10 G".
  static std::string format_tick(double value) {
    static constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P", " E"};
    std::size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
    return fmt::format("{:.0f}{}", value, kUnits[unit]);
  }

  std::string roof_line(const RooflineChart::Roof& roof) {
    const double knee = roof.flops_per_s / roof.bytes_per_s;
    const double left = std::max(std::pow(10, x_.low), std::pow(10, y_.low) / roof.bytes_per_s);
    constexpr int kPieces = 60;  // names keep clear of the line
    for (int i = 0; i <= kPieces; ++i) {
      const double at = kLeft + (right() - kLeft) * i / kPieces;
      const double intensity = std::pow(10, x_.low + (x_.high - x_.low) * i / kPieces);
      taken_.push_back({at - 2, y(std::min(intensity * roof.bytes_per_s, roof.flops_per_s)) - 2, 4, 4});
    }
    return fmt::format("<polyline class=\"roof\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>\n", x(left),
                       y(left * roof.bytes_per_s), x(knee), y(roof.flops_per_s), right(), y(roof.flops_per_s));
  }
  // At the right end of its flat part, above it, or where there is room farther up or down, with a line to it.
  std::string roof_name(const RooflineChart::Roof& roof) {
    const double top = y(roof.flops_per_s);
    const std::string name =
        fmt::format("{} {}FLOPS, {}B/s", roof.name, format_count(roof.flops_per_s), format_count(roof.bytes_per_s));
    const double length = kLetter * static_cast<double>(columns_of(name));
    constexpr double kStep = 3;
    for (double away = 0; away <= bottom(); away += kStep)
      for (const double base : {top - 5 - away, top + kText + 4 + away}) {
        const Box box{right() - length, base - kText, length, kText + 2};
        if (!free(box)) continue;
        taken_.push_back(box);
        const double edge = base < top ? base + 2 : base - kText;
        return (away > 0 ? svg_line(right() - 4, edge, right() - 4, top) : "") + svg_text("end", right(), base, name);
      }
    return "";
  }

  static double radius(const RooflineChart::Dot& dot) {
    constexpr double kLeast = 3.5, kMost = 15;
    return std::max(kLeast, kMost * std::sqrt(dot.weight));
  }
  Box box_of(const RooflineChart::Dot& dot) const {
    const double r = radius(dot);
    return {x(dot.flops_a_byte) - r, y(dot.flops_per_s) - r, 2 * r, 2 * r};
  }
  std::string circle(const RooflineChart::Dot& dot) const {
    return fmt::format(
        "<circle class=\"module\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" style=\"fill:var(--series{})\">"
        "<title>{}: {} flops a byte, {}FLOPS</title></circle>\n",
        x(dot.flops_a_byte), y(dot.flops_per_s), radius(dot), dot.series % 10, plain_html(dot.name),
        plain_html(format_count(dot.flops_a_byte)), plain_html(format_count(dot.flops_per_s)));
  }

  bool free(const Box& box) const {
    if (box.x < kLeft || box.x + box.width > width_ || box.y < 0 || box.y + box.height > bottom()) return false;
    return std::none_of(taken_.begin(), taken_.end(), [&](const Box& other) { return box.meets(other); });
  }
  // Around a dot, at growing distances, the right first.
  std::string label(const std::string& name, double cx, double cy, double r) {
    const double length = kLetter * static_cast<double>(columns_of(name));
    constexpr int kTurns = 16, kRounds = 5;
    for (int round = 0; round < kRounds; ++round)
      for (int turn = 0; turn < kTurns; ++turn) {
        const double way = (turn % 2 == 0 ? turn : -turn - 1) * std::numbers::pi / kTurns;
        const double distance = r + 4 + 12.0 * round, dx = std::cos(way), dy = std::sin(way);
        const double px = cx + distance * dx, py = cy + distance * dy;
        const Box box{dx >= -0.2 ? px : px - length, py - kText / 2 - 1, length, kText + 2};
        if (!free(box)) continue;
        taken_.push_back(box);
        std::string leader;
        if (round > 0) leader = svg_line(cx + r * dx, cy + r * dy, px, py);
        return leader + svg_text("start", box.x, py + 4, name, "name");
      }
    return "";  // no room near it: tables have it, and the dot says it when pointed at
  }

  const RooflineChart& chart_;
  double width_, height_;
  Axis x_, y_;
  std::vector<Box> taken_;
};

}  // namespace

std::string svg(const RooflineChart& chart, double width) {
  Plot plot(chart, width);
  const std::string drawn = plot.drawn();
  return fmt::format(
      "<svg class=\"plot {}\" role=\"img\" aria-label=\"roofline\" viewBox=\"0 0 {:.0f} {:.0f}\">\n{}</svg>\n",
      width < 500 ? "narrow" : "roomy", width, plot.height(), drawn);
}

}  // namespace tandem
