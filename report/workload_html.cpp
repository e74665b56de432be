// A workload as a page: the answer, a roofline, tables.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/base/units.hpp"
#include "report/html_page.hpp"
#include "report/origin.hpp"
#include "report/roofline_chart.hpp"
#include "report/workload_report.hpp"

namespace tandem {
namespace {

using Cells = std::vector<std::string>;

std::string count(double value) { return value > 0 ? format_count(value) : "0"; }
std::string time(double s) { return s > 0 ? format_time(s) : "0"; }
std::string bytes(std::int64_t value) { return value > 0 ? format_bytes(value) : "0"; }
std::string paragraph(const std::string& text) { return "<p>" + plain_html(text) + "</p>\n"; }

// Colours are the same in all reports.
constexpr std::string_view kSeries[] = {"text", "image", "audio", "video", "graph", "fused", "shared", "features"};
std::size_t series_of(Modalities modalities) {
  const auto found = std::find(std::begin(kSeries), std::end(kSeries), label_of(modalities));
  return static_cast<std::size_t>(found - std::begin(kSeries));
}

RooflineChart chart_of(const WorkloadReport& r) {
  RooflineChart chart;
  chart.roofs = {{r.device_word(), r.device.flops_per_s, r.device.bytes_per_s},
                 {"CPU", r.cpu.flops_per_s, r.cpu.bytes_per_s}};
  double most_s = 0;
  for (const GroupReport& g : r.groups) most_s = std::max(most_s, g.costs.device.seconds);
  for (const GroupReport& g : r.groups) {
    const std::size_t series = series_of(g.group.modalities);
    const ProcessorTime& t = g.all_on_cpu() ? g.costs.cpu : g.costs.device;
    if (g.costs.flops() > 0 && t.seconds > 0)
      chart.dots.push_back({title_of(g) + (g.all_on_cpu() ? " (CPU)" : ""), g.costs.intensity(),
                            g.costs.flops() / t.seconds, t.seconds / most_s, series});
  }
  return chart;
}

// Those of which there is nothing to draw.
std::string without_flops(const WorkloadReport& r) {
  std::string names;
  for (const GroupReport& g : r.groups)
    if (g.costs.flops() <= 0)
      names += fmt::format("{}{} {}", names.empty() ? "" : ", ", title_of(g), time(g.costs.device.seconds));
  return names.empty() ? "" : paragraph("Without products, so that they only move bytes: " + names + ".");
}

std::string legend(const WorkloadReport& r) {
  std::set<std::size_t> series;
  for (const GroupReport& g : r.groups) series.insert(series_of(g.group.modalities));
  std::string marks = "<div class=\"legend\">";
  for (const std::size_t i : series)
    marks += fmt::format("<span><i style=\"background:var(--series{})\"></i>{}</span>", i, kSeries[i]);
  return marks + "</div>\n";
}

std::string roofline(const WorkloadReport& r) {
  const RooflineChart chart = chart_of(r);
  constexpr double kDesk = 640, kPhone = 360;
  return html_section(
      "Roofline",
      fmt::format("Where each kind of module lies under what the {} and the CPU can do. A dot's area is "
                  "its time on the {}, its colour the data that reach it.",
                  r.device_word(), r.device_word()),
      svg(chart, kDesk) + svg(chart, kPhone) + legend(r) + without_flops(r));
}

std::string scrolling(const std::string& rows) {
  return "<div class=\"scrolls\" tabindex=\"0\" role=\"group\" aria-label=\"table\"><table>\n" + rows +
         "</table></div>\n";
}

std::string work_table(const WorkloadReport& r) {
  std::string rows = html_row({"module", "data", "access", "flops forward", "backward", "recompute", "bytes",
                               "flops a byte", "weights", "gradients", "states", "saved"},
                              "th");
  for (const GroupReport& g : r.groups) {
    const GroupCosts& c = g.costs;
    rows += html_row({plain_html(title_of(g)), plain_html(label_of(g.group.modalities)), g.access.words(),
                      count(c.forward_flops), count(c.backward_flops), count(c.recompute_flops), count(c.bytes()),
                      count(c.intensity()), bytes(c.parameter_bytes), bytes(c.gradient_bytes), bytes(c.state_bytes),
                      bytes(c.activation_bytes)});
  }
  return html_section("What it computes",
                      "In a step, of all modules of a kind together. Saved: activations that a micro-batch's forward "
                      "leaves for its backward.",
                      scrolling(rows));
}

std::string timed(const ProcessorTime& t) {
  return t.seconds > 0 ? fmt::format("{}<div class=\"more\">{}</div>", format_time(t.seconds), t.evidence()) : "0";
}

std::string place_table(const WorkloadReport& r) {
  std::string rows = html_row(
      {"module", r.device_word(), "CPU", "copied in", "out", "copies", "critical path", "waits", "place"}, "th");
  const double step = r.step_s.value_or(0);
  const auto share = [&](double s) { return step > 0 ? format_percent(s / step) : std::string(); };
  const auto waits = [&](double s) { return step > 0 ? time(s) : std::string(); };
  for (const GroupReport& g : r.groups)
    rows += html_row({plain_html(title_of(g)), timed(g.costs.device), timed(g.costs.cpu), bytes(g.costs.in_bytes),
                      bytes(g.costs.out_bytes), time(g.costs.transfer_s), share(g.share.path_s),
                      waits(g.share.exposed_s), place_of(r, g)});
  if (step > 0)
    rows += html_row({"(no module)", "", "", "", "", "", share(r.others.path_s), waits(r.others.exposed_s), ""});
  return html_section("Where it stands",
                      "Copies: what would cross the bus if the kind stood on the other side. Critical path: its share "
                      "of a simulated step. Waits: of that, while the device computes nothing.",
                      scrolling(rows));
}

std::string reasons(const WorkloadReport& r) {
  std::string list;
  for (const GroupReport& g : r.groups)
    list += fmt::format("<p><b>{}: {}</b>: {}.</p>\n", plain_html(title_of(g)), place_of(r, g),
                        plain_html(reason_of(r, g)));
  return html_section("Why", "A place elsewhere is suggested only where a simulation was faster with it, or fitted.",
                      list);
}

std::string flow(const WorkloadReport& r) {
  std::string text;
  for (const Meeting& meeting : r.meetings) text += paragraph(sentence_of(r, meeting));
  if (!text.empty()) text = html_section("Where data meet", "Times from the first forward of a step.", text);
  return text + html_section("Input", "The loader beside the compute of a step.", paragraph(input_sentence(r)));
}

}  // namespace

std::string workload_html(const WorkloadReport& r) {
  const std::string name = r.scenario.substr(r.scenario.rfind('/') + 1);
  return html_page({.title = "Workload: " + name,
                    .subtitle = fmt::format("{} in {} on {}, policy {}, simulated{}", r.family, r.precision, r.machine,
                                            r.policy, r.gpu ? "" : "; " + stand_in_remark()),
                    .headline = answer(r),
                    .body = roofline(r) + place_table(r) + reasons(r) + work_table(r) + flow(r),
                    .origin = origin_html(r.origin)});
}

}  // namespace tandem
