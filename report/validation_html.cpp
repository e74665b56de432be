// The validation as a page: a scatter plot on logarithmic axes, errors by cause, and a table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.hpp"
#include "report/chart_parts.hpp"
#include "report/comparison.hpp"
#include "report/html_page.hpp"
#include "report/origin.hpp"
#include "report/validation.hpp"

namespace tandem {
namespace {

constexpr double kLeft = 88, kRight = 24, kTop = 10, kBelow = 50;  // of the plot, in units of its own

// Both axes of the plot: the same logarithmic scale.
class Scale {
 public:
  Scale(const ValidationTable& validation, double side_units) : side(side_units) {
    for (const ValidatedScenario& row : validation.rows)
      for (const double s : {row.predicted_s, row.measured_s}) {
        low_ = std::min(low_, std::log10(s));
        high_ = std::max(high_, std::log10(s));
      }
    constexpr double kMargin = 0.1;
    low_ -= kMargin;
    high_ += kMargin;
  }
  double x(double s) const { return kLeft + share(s) * side; }
  double y(double s) const { return kTop + (1 - share(s)) * side; }
  double low_s() const { return std::pow(10, low_); }
  double high_s() const { return std::pow(10, high_); }
  // 1, 2 and 5 times powers of ten; where all are alike, tenths and less of them, so that there are three.
  std::vector<double> ticks() const {
    constexpr std::size_t kLeast = 3;
    std::vector<double> all;
    for (int power = static_cast<int>(std::floor(low_)); power <= high_; ++power)
      for (const double digit : {1.0, 2.0, 5.0}) add(digit * std::pow(10, power), all);
    for (double step = std::pow(10, std::floor(low_)); all.size() < kLeast; step /= 2) {
      all.clear();
      for (double s = std::ceil(low_s() / step) * step; s <= high_s(); s += step) add(s, all);
    }
    return all;
  }

  const double side;

 private:
  void add(double s, std::vector<double>& ticks) const {
    if (s >= low_s() && s <= high_s()) ticks.push_back(s);
  }
  double share(double s) const { return (std::log10(s) - low_) / (high_ - low_); }
  double low_ = 1e9, high_ = -1e9;
};

std::string axes(const Scale& scale) {
  const double right = kLeft + scale.side, bottom = kTop + scale.side, low = scale.low_s(), high = scale.high_s();
  const auto point = [&](double x, double y) { return fmt::format("{:.1f},{:.1f} ", scale.x(x), scale.y(y)); };
  // An inner image, so that the band is cut off at the plot's edges.
  std::string svg = fmt::format(
      "<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{2}\" viewBox=\"{0} {1} {2} {2}\"><polygon class=\"aim\" "
      "points=\"{3}{4}{5}{6}\"/></svg>\n",
      kLeft, kTop, scale.side, point(low, low * (1 - kWorstAim)), point(high, high * (1 - kWorstAim)),
      point(high, high * (1 + kWorstAim)), point(low, low * (1 + kWorstAim)));
  const auto line = [&](const char* kind, double x1, double y1, double x2, double y2) {
    svg += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind, x1, y1,
                       x2, y2);
  };
  const auto label = [&](const char* anchor, double x, double y, const std::string& text) {
    svg += fmt::format("<text text-anchor=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", anchor, x, y, text);
  };
  constexpr double kNumber = 56;
  double free = 0;  // numbers keep clear of each other
  for (const double s : scale.ticks()) {
    line("grid", scale.x(s), kTop, scale.x(s), bottom);
    line("grid", kLeft, scale.y(s), right, scale.y(s));
    if (scale.x(s) >= free) label("middle", scale.x(s), bottom + 18, format_time(s)), free = scale.x(s) + kNumber;
    label("end", kLeft - 8, scale.y(s) + 4, format_time(s));
  }
  line("equal", scale.x(low), scale.y(low), scale.x(high), scale.y(high));
  label("middle", kLeft + scale.side / 2, bottom + 40, "measured step");
  svg +=
      fmt::format("<text text-anchor=\"middle\" transform=\"translate(14 {:.1f}) rotate(-90)\">predicted step</text>\n",
                  kTop + scale.side / 2);
  return svg;
}

std::string plot(const ValidationTable& validation, double side, const char* kind) {
  const Scale scale(validation, side);
  std::string svg = axes(scale);
  for (const ValidatedScenario& row : validation.rows)
    if (row.interval && row.interval->low > 0)
      svg += fmt::format("<line class=\"interval\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n",
                         scale.x(row.measured_s), scale.y(row.interval->low), scale.y(row.interval->high));
  for (const ValidatedScenario& row : validation.rows)
    svg += fmt::format(
        "<circle class=\"dot{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}\npredicted {}, measured {}: "
        "{}</title></circle>\n",
        misses(row) ? " missed" : "", scale.x(row.measured_s), scale.y(row.predicted_s), plain_html(row.name),
        format_time(row.predicted_s), format_time(row.measured_s), format_error(row.step_error()));
  return svg_picture(kLeft + side + kRight, kTop + side + kBelow, "predicted over measured steps", svg, "img", kind);
}

std::string fact(const char* label, const std::string& value, const std::string& more) {
  return fmt::format(
      "<div class=\"fact\"><div class=\"label\">{}</div><div class=\"value\">{}</div><div "
      "class=\"more\">{}</div></div>\n",
      label, value, more);
}

std::string facts(const ValidationTable& validation) {
  const ErrorSizes step = step_errors(validation), peak = device_errors(validation);
  const std::vector<Ranking> all = rankings(validation);
  const auto right = std::count_if(all.begin(), all.end(), [](const Ranking& r) { return r.right(); });
  const IntervalFigures intervals = interval_figures(validation);
  const auto aim = [](double share) { return "aim " + format_percent(share); };
  return html_section(
      "How far off", "Of the measured step, and of the measured peak.",
      "<div class=\"facts\">\n" + fact("step time, median error", format_percent(step.median), aim(kMedianAim)) +
          fact("90th percentile", format_percent(step.p90), aim(kP90Aim)) +
          fact("worst", format_percent(step.worst), aim(kWorstAim)) +
          (intervals.scenarios == 0
               ? ""
               : fact("inside the 90% interval", fmt::format("{} of {}", intervals.inside, intervals.scenarios),
                      fmt::format("aim {} to {}; median width {}, aim {}", format_percent(kLeastInsideAim),
                                  format_percent(kMostInsideAim), format_percent(intervals.median_width),
                                  format_percent(kWidthAim)))) +
          fact("peak bytes of the device, worst", format_percent(peak.worst), aim(kPeakAim)) +
          (all.empty() ? ""
                       : fact("fastest policy foreseen", fmt::format("{} of {}", right, all.size()),
                              "groups, within " + format_percent(kRankingAim))) +
          "</div>\n");
}

std::string scrolling(const std::string& rows) {
  return "<div class=\"scrolls\" tabindex=\"0\" role=\"group\" aria-label=\"table\"><table>\n" + rows +
         "</table></div>\n";
}

std::string causes(const ValidationTable& validation) {
  std::string table = html_row({"of the measured step", "median", "90th percentile", "worst", "bias"}, "th");
  for (const auto& [cause, sizes] : cause_errors(validation))
    table += html_row({cause, format_percent(sizes.median), format_percent(sizes.p90), format_percent(sizes.worst),
                       format_error(sizes.bias)});
  return scrolling(table);
}

std::string scenarios(const ValidationTable& validation) {
  std::string table = html_row(
      {"scenario", "predicted", "measured", "spread", "error", "90% interval", "measured", "device peak", "host peak"},
      "th");
  for (const ValidatedScenario& row : validation.rows)
    table += html_row(
        {plain_html(row.name), format_time(row.predicted_s), format_time(row.measured_s), format_percent(row.spread),
         format_error(row.step_error()), row.interval ? format_range(row.interval->low, row.interval->high) : "-",
         row.interval ? row.inside() ? "inside" : "outside" : "", format_error(row.device_error),
         format_error(row.host_error)},
        "td", misses(row) ? " class=\"missed\"" : "");
  return scrolling(table);
}

std::string failures(const ValidationTable& validation) {
  std::string text;
  for (const FailedScenario& failure : validation.failures)
    text += "<p>" + plain_html(validation_line(failure)) + "</p>\n";
  return text.empty() ? "" : html_section("Without one of both", "They did not run, measured or predicted.", text);
}

std::string headline(const ValidationTable& validation) {
  if (validation.rows.empty()) return "No scenario has both a prediction and a measurement.";
  const ErrorSizes step = step_errors(validation);
  const auto missed = std::count_if(validation.rows.begin(), validation.rows.end(), misses);
  return fmt::format("Predicted steps are {} off in the median and {} at worst; {} of {} scenarios miss the aim of {}.",
                     format_percent(step.median), format_percent(step.worst), missed, validation.rows.size(),
                     format_percent(kWorstAim));
}

}  // namespace

std::string validation_html(const ValidationTable& validation) {
  std::string body = facts(validation);
  if (!validation.rows.empty())
    body +=
        html_section("Predicted against measured",
                     "Both axes are logarithmic. The band is 10% of the measured step wide on either side; lines are "
                     "90% intervals.",
                     plot(validation, 600, "roomy") + plot(validation, 248, "narrow") + "\n");
  body +=
      html_section("Errors by cause",
                   "What the compute lane did or waited for: sizes of the differences, and their median with signs.",
                   causes(validation));
  body += html_section("Scenarios",
                       "Error: predicted over measured, minus 1. Spread: 10th to 90th percentile of the steps.",
                       scenarios(validation));
  body += failures(validation);
  return html_page({.title = "Predictions and measurements",
                    .subtitle = fmt::format("{} scenarios", validation.rows.size()),
                    .headline = headline(validation),
                    .body = body,
                    .origin = origin_html(validation.origin)});
}

}  // namespace tandem
