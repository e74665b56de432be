// An explanation as a page: its sentence, and what that is from as bars and tables.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/units.hpp"
#include "report/charts.hpp"
#include "report/explanation.hpp"
#include "report/html_page.hpp"
#include "report/origin.hpp"

namespace tandem {
namespace {

std::string scrolling(const std::string& name, const std::string& rows) {
  return fmt::format(
      "<div class=\"scrolls\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table>\n{}</table></div>\n", name, rows);
}

std::string path_section(const Explanation& e) {
  const std::vector<ShownPart> parts = shown_path(e);
  if (parts.empty()) return "";
  const double step_s = e.run.at("steady_step_s").get<double>();
  const Unit unit = time_unit(parts.front().seconds);
  BarChart bars{"of a step, " + unit.name, {"of a step"}, {}};
  std::string rows = html_row({"what", "what runs", "time", "of the step"}, "th");
  for (const ShownPart& part : parts) {
    bars.rows.push_back({part.cause + " " + part.what, {part.seconds / unit.size}, ""});
    rows += html_row({plain_html(part.what), plain_html(part.cause), format_time(part.seconds),
                      step_s > 0 ? format_percent(part.seconds / step_s) : ""});
  }
  return html_section(
      "Critical path of a step",
      fmt::format("What the end of a step waited for, one after the other, back to its begin: {} in the mean.",
                  format_time(step_s)),
      svg(bars) + scrolling("critical path", rows));
}

// A row of what an alternative brings, or why it does not run.
std::string row_of(const Explanation& e, const std::string& name, const Alternative& with, const char* remark) {
  if (!with.step_s)
    return fmt::format("<tr><td>{}</td><td colspan=\"4\"><div class=\"reason\">{}</div></td></tr>\n", plain_html(name),
                       plain_html(with.why_not));
  const std::optional<double> share = e.others.saved_share(with);
  return html_row({plain_html(name), format_time(*with.step_s), format_time(e.others.now_s - *with.step_s),
                   share ? format_percent(*share) : "", remark});
}

std::string resources_section(const Explanation& e) {
  if (e.others.resources.empty()) return "";
  constexpr double kPercent = 0.01, kShown = 0.0005;  // what is less is shown as 0.0%
  const WorthOfMore* best = worth_most(e.others);
  BarChart bars{"saved, % of the step", {"saved"}, {}};
  std::string rows = html_row({"resource", "step", "saves", "of the step", "remark"}, "th");
  for (const WorthOfMore& worth : fastest_first(e.others.resources)) {
    const std::optional<double> share = e.others.saved_share(worth.with);
    const bool is_best = best != nullptr && best->more.resource == worth.more.resource;
    BarChart::Row row{worth.more.words, {}, share ? "nothing" : "not simulated", is_best};
    if (share && *share >= kShown) row.values.emplace_back(*share / kPercent);
    bars.rows.push_back(std::move(row));
    rows += row_of(e, worth.more.words, worth.with, "");
  }
  return html_section(fmt::format("{:.0f}% more of a resource", 100 * (e.others.factor - 1)),
                      "What a step saves: each by a simulation with that alone changed.",
                      svg(bars) + scrolling("resources", rows));
}

std::string policies_section(const Explanation& e) {
  if (e.others.policies.empty()) return "";
  const std::vector<OtherPolicy> others = fastest_first(e.others.policies);
  double most_s = e.others.now_s;
  for (const OtherPolicy& other : others) most_s = std::max(most_s, other.with.step_s.value_or(0));
  const Unit unit = time_unit(most_s);
  const OtherPolicy* better = better_policy(e.others);
  BarChart bars{"step time, " + unit.name, {"step"}, {}};
  bars.rows.push_back({"as it is", {e.others.now_s / unit.size}, ""});
  std::string rows = html_row({"policy", "step", "saves", "of the step", "remark"}, "th");
  for (const OtherPolicy& other : others) {
    BarChart::Row row{other.policy, {}, "not possible", better != nullptr && better->policy == other.policy};
    if (other.with.step_s) row.values.emplace_back(*other.with.step_s / unit.size);
    bars.rows.push_back(std::move(row));
    rows += row_of(e, other.policy, other.with, other.approximate ? "other losses" : "");
  }
  return html_section("Other policies", "The same scenario under each, with its default options: shorter is better.",
                      svg(bars) + scrolling("policies", rows));
}

std::string paragraph(std::string words) {
  words.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(words.front())));
  return "<p>" + plain_html(words) + ".</p>\n";
}

std::string roofline_section(const Explanation& e) {
  const std::string words = roofline_words(e);
  if (words.empty()) return "";
  return html_section(e.gpu ? "Roofline of the GPU" : "Roofline of the device",
                      "What a step computes for each byte of its memory, and what it could.", paragraph(words));
}

}  // namespace

std::string explanation_html(const Explanation& e) {
  const std::string scenario = e.run.at("scenario").get<std::string>();
  return html_page({.title = "Why a step takes as long: " + scenario.substr(scenario.rfind('/') + 1),
                    .subtitle = fmt::format("{}, policy {}, {}", e.run.at("machine").get<std::string>(),
                                            e.run.at("policy").get<std::string>(), e.run.at("mode").get<std::string>()),
                    .headline = sentence(e),
                    .body = html_section("The step", "", paragraph(step_words(e))) + "<div class=\"charts\">\n" +
                            path_section(e) + resources_section(e) + policies_section(e) + roofline_section(e) +
                            "</div>\n",
                    .origin = origin_html(e.origin)});
}

}  // namespace tandem
