// Placements over a mix as a page: the answer, lines with the flips marked, tables.
#include <fmt/format.h>

#include "core/base/units.hpp"
#include "report/html_page.hpp"
#include "report/mix_chart.hpp"
#include "report/mix_report.hpp"
#include "report/origin.hpp"

namespace tandem {
namespace {

std::string paragraph(const std::string& text) { return "<p>" + plain_html(text) + "</p>\n"; }

MixChart chart_of(const MixReport& r, const MixSweep& sweep) {
  MixChart chart;
  chart.x_axis = "share of samples that have " + sweep.modality;
  chart.y_axis = "samples/s";
  for (const MixAtShare& point : sweep.points) chart.x.push_back(point.share);
  for (std::size_t i = 0; i < r.placements.size(); ++i) {
    MixChart::Line& line = chart.lines.emplace_back();
    line.name = r.placements[i].name, line.dashed = !r.placements[i].fixed;
    for (const MixAtShare& point : sweep.points)
      line.y.push_back(point.runs[i] ? std::optional(point.runs[i]->samples_per_s) : std::nullopt);
  }
  const std::vector<std::size_t> chosen = to_have(r, sweep);
  const std::vector<MixFlip> found = flips(r, sweep);
  if (found.empty() && !chosen.empty() && chosen.front() != kNoPlacement)
    chart.bands.push_back({sweep.points.front().share, sweep.points.back().share, chosen.front()});
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i == 0) chart.bands.push_back({sweep.points.front().share, found[i].share, found[i].from});
    chart.bands.push_back(
        {found[i].share, i + 1 < found.size() ? found[i + 1].share : sweep.points.back().share, found[i].to});
  }
  return chart;
}

std::string legend(const MixReport& r) {
  std::string marks = "<div class=\"legend\">";
  for (std::size_t i = 0; i < r.placements.size(); ++i)
    marks += fmt::format("<span><i style=\"background:var(--series{})\"></i>{}: {}</span>", i % 10,
                         plain_html(r.placements[i].name), plain_html(r.placements[i].words));
  return marks + "</div>\n";
}

// The headline has the first answer.
std::string said(const MixReport& r, const MixSweep& sweep) {
  std::string text = &sweep == &r.sweeps.front() ? "" : paragraph(answer(r, sweep));
  if (const std::string adaptive = adaptive_sentence(r, sweep); !adaptive.empty()) text += paragraph(adaptive);
  return text.empty() ? ""
                      : html_section("Over the share of " + plain_html(sweep.modality),
                                     "Losses are of the best one's throughput.", text);
}

std::string picture(const MixReport& r, const MixSweep& sweep) {
  const MixChart chart = chart_of(r, sweep);
  constexpr double kDesk = 640, kPhone = 360;
  return html_section("Throughput over the share of " + plain_html(sweep.modality),
                      "Lines without dashes never change their placement. The strip below names the best of those, and "
                      "a vertical line stands where it flips.",
                      svg(chart, kDesk) + svg(chart, kPhone) + legend(r));
}

std::string table(const MixReport& r, const MixSweep& sweep) {
  std::vector<std::string> heads{plain_html(sweep.modality)};
  for (const MixPlacement& placement : r.placements) heads.push_back(plain_html(placement.name));
  heads.push_back("best");
  std::string rows = html_row(heads, "th");
  const std::vector<std::size_t> chosen = to_have(r, sweep);
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    std::vector<std::string> cells{fmt::format("{:.3g}", sweep.points[i].share)};
    for (std::size_t p = 0; p < r.placements.size(); ++p) {
      const auto& run = sweep.points[i].runs[p];
      cells.push_back(run ? fmt::format("{}<div class=\"more\">{} {}</div>", format_count(run->samples_per_s),
                                        plain_html(run->holder.cause), format_percent(run->holder.share))
                          : plain_html(sweep.points[i].why_not[p]));
    }
    cells.push_back(chosen[i] == kNoPlacement ? "" : plain_html(r.placements[chosen[i]].name));
    rows += html_row(cells);
  }
  return html_section("Figures",
                      "Samples a second, and what holds a step: the device's own work, or what it waits for "
                      "most, with its share of the step.",
                      "<div class=\"scrolls\" tabindex=\"0\" role=\"group\" aria-label=\"table\"><table>\n" + rows +
                          "</table></div>\n");
}

}  // namespace

std::string mix_html(const MixReport& r) {
  const std::string name = r.scenario.substr(r.scenario.rfind('/') + 1);
  std::string body;
  for (const MixSweep& sweep : r.sweeps) body += said(r, sweep) + picture(r, sweep) + table(r, sweep);
  std::string subtitle = fmt::format("{} on {}, simulated, {}", r.family, r.machine, steps_words(r));
  for (const MixSweep& sweep : r.sweeps)
    if (!sweep.others.empty() && r.sweeps.size() == 1) subtitle += "; " + sweep.others;
  return html_page({.title = "Placement over the mix: " + name,
                    .subtitle = subtitle,
                    .headline = r.sweeps.empty() ? "" : answer(r, r.sweeps.front()),
                    .body = body,
                    .origin = origin_html(r.origin)});
}

}  // namespace tandem
