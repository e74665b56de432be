// An explanation in words.
#include "report/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.hpp"
#include "report/held_words.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// Parts of the critical path that are shown one by one.
constexpr std::size_t kMostParts = 10;
// A simulation that is further from what was measured says little of it.
constexpr double kFarOff = 0.2;

double number(const Json& json, const char* key) { return json.at(key).get<double>(); }

bool was_simulated(const WorthOfMore& worth) { return worth.with.step_s.has_value(); }

std::string bus_words(const Explanation& e, double flops, double peak) {
  double bytes = 0;
  std::size_t ranks = 0;
  for (const auto& [lane, of_lane] : e.run.at("bytes_a_step").items())
    if (lane.ends_with("/h2d")) {
      bytes += of_lane.get<double>();
      ++ranks;
    }
  if (bytes <= 0 || e.h2d_bytes_per_s <= 0) return "";
  return fmt::format("; over the bus, {} flops a byte that is copied to it, where {} balance",
                     format_count(flops * static_cast<double>(ranks) / bytes), format_count(peak / e.h2d_bytes_per_s));
}

}  // namespace

std::string sentence(const Explanation& explanation) {
  const Alternatives& others = explanation.others;
  const auto& held = explanation.run.at("limited_by");
  std::string text = held_words({held.at("cause").get<std::string>(), held.at("share").get<double>()}, explanation.gpu,
                                explanation.optimizer);
  text.front() = 'T';
  const bool measured = explanation.run.at("mode") == "measured";
  if (measured) text += "; by simulation";
  const char* then = measured ? ", " : "; ";
  const std::string percent = fmt::format("{:.0f}%", 100 * (others.factor - 1));
  if (const WorthOfMore* best = worth_most(others))
    text += fmt::format("{}{} more {} would save {} of it", then, percent, best->more.words,
                        format_percent(*others.saved_share(best->with)));
  else if (std::any_of(others.resources.begin(), others.resources.end(), was_simulated))
    text += fmt::format(
        "{}{} more of any one resource{} would save less than {} of it", then, percent,
        std::all_of(others.resources.begin(), others.resources.end(), was_simulated) ? "" : " that could be simulated",
        format_percent(kLeastSaved));
  if (const OtherPolicy* better = better_policy(others))
    text += fmt::format("; {} would take {} instead of {}", better->policy, format_time(*better->with.step_s),
                        format_time(others.now_s));
  else if (!others.policies.empty())
    text += fmt::format("; of {} other polic{} none is faster", others.policies.size(),
                        others.policies.size() == 1 ? "y" : "ies");
  return text + ".";
}

std::string step_words(const Explanation& e) {
  const bool measured = e.run.at("mode").get<std::string>() == "measured";
  const double run_s = number(e.run.at("step_time_s"), "median"), simulated_s = e.others.now_s;
  std::string text =
      fmt::format("a step takes {}, {}, under {} on {}", format_time(run_s), e.run.at("mode").get<std::string>(),
                  e.run.at("policy").get<std::string>(), e.run.at("machine").get<std::string>());
  if (measured || !e.settings.empty())
    text += fmt::format("; {} in the simulation of {} steps that the tables below stand beside",
                        format_time(simulated_s), e.simulated_steps);
  if (measured && std::abs(simulated_s / run_s - 1) > kFarOff)
    text += fmt::format(", which is {} off: its profile may not be of the machine that ran",
                        format_percent(std::abs(simulated_s / run_s - 1)));
  return text;
}

std::string roofline_words(const Explanation& e) {
  const Json& at = e.run.at("roofline");
  const double arithmetic = number(at, "arithmetic_s"), memory = number(at, "memory_s");
  const double flops = number(at, "flops"), peak = number(at, "peak_flops_per_s");
  if (arithmetic + memory <= 0) return "";
  const std::string text = fmt::format(
      "{}FLOP and {}B of its memory a step: {} flops a byte, where {} balance "
      "({}FLOPS, {}B/s); its arithmetic bounds {} of what it runs, its memory the rest",
      format_count(flops), format_count(number(at, "bytes")), format_count(number(at, "flops_a_byte")),
      format_count(number(at, "balance_flops_a_byte")), format_count(peak),
      format_count(number(at, "memory_bytes_per_s")), format_percent(arithmetic / (arithmetic + memory)));
  return text + bus_words(e, flops, peak);
}

std::vector<ShownPart> shown_path(const Explanation& e) {
  std::vector<ShownPart> parts;
  std::size_t rest = 0;
  double rest_s = 0;
  for (const Json& part : e.run.at("critical_path")) {
    const std::string what = part.at("what").get<std::string>();
    if (parts.size() < kMostParts) {
      parts.push_back({part.at("cause").get<std::string>(), what.empty() ? "(between two commands)" : what,
                       number(part, "seconds")});
      continue;
    }
    ++rest;
    rest_s += number(part, "seconds");
  }
  if (rest_s > 0) parts.push_back({"others", fmt::format("({})", rest), rest_s});
  return parts;
}

}  // namespace tandem
