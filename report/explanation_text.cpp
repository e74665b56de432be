// An explanation for people, and for programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/units.hpp"
#include "report/explanation.hpp"
#include "report/summary.hpp"
#include "report/wrap.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// Parts of the critical path that are shown one by one.
constexpr std::size_t kMostParts = 10;
// A simulation that is further from what was measured says little of it.
constexpr double kFarOff = 0.2;
// Policies of which so many are shown, be they slower.
constexpr std::size_t kLeastPolicies = 3;

double number(const Json& json, const char* key) { return json.at(key).get<double>(); }
double median_s(const Json& result) { return number(result.at("step_time_s"), "median"); }

std::string step_line(const Explanation& e) {
  const bool measured = e.run.at("mode").get<std::string>() == "measured";
  const double run_s = median_s(e.run), simulated_s = median_s(e.simulated);
  std::string text =
      fmt::format("a step takes {}, {}, under {} on {}", format_time(run_s), e.run.at("mode").get<std::string>(),
                  e.run.at("policy").get<std::string>(), e.run.at("machine").get<std::string>());
  if (measured || !e.settings.empty())
    text += fmt::format("; {} in the simulation of {} steps that the tables below stand beside",
                        format_time(simulated_s), e.simulated.at("steps").get<std::int64_t>());
  if (measured && std::abs(simulated_s / run_s - 1) > kFarOff)
    text += fmt::format(", which is {} off: its profile may not be of the machine that ran",
                        format_percent(std::abs(simulated_s / run_s - 1)));
  return terminal_text(text);
}

std::string path_row(const std::string& cause, const std::string& what, double seconds, double step_s) {
  return fmt::format("  {:<14} {:<36} {:>9} {:>7}\n", cause, terminal_text(what), format_time(seconds),
                     format_percent(seconds / step_s));
}

std::string path_text(const Explanation& e) {
  const double step_s = number(e.run, "steady_step_s");
  std::string text = fmt::format("\ncritical path of a step, {} in the mean\n", format_time(step_s));
  std::size_t shown = 0;
  double rest_s = 0;
  for (const Json& part : e.run.at("critical_path")) {
    const double seconds = number(part, "seconds");
    if (++shown > kMostParts) {
      rest_s += seconds;
      continue;
    }
    const std::string what = part.at("what").get<std::string>();
    text +=
        path_row(part.at("cause").get<std::string>(), what.empty() ? "(between two commands)" : what, seconds, step_s);
  }
  if (rest_s > 0) text += path_row("others", fmt::format("({})", shown - kMostParts), rest_s, step_s);
  return text;
}

std::string bus_line(const Explanation& e, double flops, double peak) {
  const auto& moved = e.run.at("bytes_a_step");
  double bytes = 0;
  std::size_t ranks = 0;
  for (const auto& [lane, of_lane] : moved.items())
    if (lane.ends_with("/h2d")) {
      bytes += of_lane.get<double>();
      ++ranks;
    }
  if (bytes <= 0 || e.h2d_bytes_per_s <= 0) return "";
  return fmt::format("; over the bus, {} flops a byte that is copied to it, where {} balance",
                     format_count(flops * static_cast<double>(ranks) / bytes), format_count(peak / e.h2d_bytes_per_s));
}

std::string roofline_text(const Explanation& e, std::size_t columns) {
  const Json& at = e.run.at("roofline");
  const double arithmetic = number(at, "arithmetic_s"), memory = number(at, "memory_s");
  const double flops = number(at, "flops"), peak = number(at, "peak_flops_per_s");
  if (arithmetic + memory <= 0) return "";
  std::string text = fmt::format(
      "{}FLOP and {}B of its memory a step: {} flops a byte, where {} balance "
      "({}FLOPS, {}B/s); its arithmetic bounds {} of what it runs, its memory the rest",
      format_count(flops), format_count(number(at, "bytes")), format_count(number(at, "flops_a_byte")),
      format_count(number(at, "balance_flops_a_byte")), format_count(peak),
      format_count(number(at, "memory_bytes_per_s")), format_percent(arithmetic / (arithmetic + memory)));
  return fmt::format("\nroofline of the {}\n  {}\n", e.gpu ? "GPU" : "device",
                     wrapped(text + bus_line(e, flops, peak), columns, 2));
}

std::string row(const std::string& name, const Explanation& e, double with_s, const char* remark) {
  const double now_s = median_s(e.simulated), share = 1 - with_s / now_s;
  return fmt::format("  {:<36} {:>9} {:>9} {:>7}{}\n", terminal_text(name), format_time(with_s),
                     format_time(now_s - with_s), format_percent(share), remark);
}

std::string table_head(const std::string& title) {
  return fmt::format("\n{:<38} {:>9} {:>9} {:>7}\n", title, "step", "saves", "of it");
}

// Names that share a remark, in a line.
class Merged {
 public:
  void add(const std::string& remark, const std::string& name) {
    std::string& names = names_[remark];
    names += (names.empty() ? "" : ", ") + name;
  }
  std::string text(std::size_t columns) const {
    std::string text;
    for (const auto& [remark, names] : names_)
      text += "  " + wrapped(terminal_text(remark + ": " + names), columns, 2) + "\n";
    return text;
  }

 private:
  std::map<std::string, std::string> names_;
};

template <typename T>
std::vector<T> fastest_first(std::vector<T> all) {
  const auto order = [](const T& one) { return one.with.step_s.value_or(std::numeric_limits<double>::max()); };
  std::stable_sort(all.begin(), all.end(), [&](const T& a, const T& b) { return order(a) < order(b); });
  return all;
}

std::string resources_text(const Explanation& e, std::size_t columns) {
  // What is less is shown as 0.0%.
  constexpr double kShown = 0.0005;
  std::string text = table_head(fmt::format("{:.0f}% more", 100 * (e.factor - 1)));
  Merged others;
  for (const auto& [more, with] : fastest_first(e.resources)) {
    if (!with.step_s)
      others.add("not simulated, " + with.why_not, more.words);
    else if (std::abs(*saved_share(e, with)) < kShown)
      others.add("no change", more.words);
    else
      text += row(more.words, e, *with.step_s, "");
  }
  return text + others.text(columns);
}

std::string policies_text(const Explanation& e, std::size_t columns) {
  std::string text = table_head("other policies");
  Merged others;
  std::size_t shown = 0;
  for (const OtherPolicy& other : fastest_first(e.policies)) {
    if (!other.with.step_s)
      others.add("not possible", other.policy);
    else if (shown >= kLeastPolicies && *saved_share(e, other.with) <= 0 && columns != kAnyColumns)
      others.add("slower", other.policy);
    else
      text += row(other.policy, e, *other.with.step_s, other.approximate ? "  other losses" : "");
    if (other.with.step_s) ++shown;
  }
  return text + others.text(columns);
}

Json alternative(const Explanation& e, const Alternative& with) {
  if (!with.step_s) return {{"why_not", with.why_not}};
  return {{"step_s", *with.step_s},
          {"saves_s", median_s(e.simulated) - *with.step_s},
          {"saves_share", *saved_share(e, with)}};
}

}  // namespace

std::string explanation_text(const Explanation& e, std::size_t columns) {
  std::string text = wrapped(sentence(e), columns) + "\n\n" + wrapped(step_line(e), columns) + "\n" + path_text(e) +
                     roofline_text(e, columns);
  if (!e.resources.empty()) text += resources_text(e, columns);
  if (!e.policies.empty()) text += policies_text(e, columns);
  return text;
}

Json explanation_json(const Explanation& e) {
  Json resources = Json::array(), policies = Json::array();
  for (const WorthOfMore& worth : e.resources) {
    Json one = {{"resource", worth.more.resource}, {"words", worth.more.words}, {"set", worth.more.settings}};
    one.update(alternative(e, worth.with));
    resources.push_back(std::move(one));
  }
  for (const OtherPolicy& other : e.policies) {
    Json one = {{"policy", other.policy}, {"approximate", other.approximate}};
    one.update(alternative(e, other.with));
    policies.push_back(std::move(one));
  }
  const WorthOfMore* best = worth_most(e);
  const OtherPolicy* better = better_policy(e);
  Json json{{"schema", 1},
            {"sentence", sentence(e)},
            {"limited_by", e.run.at("limited_by")},
            {"worth_most", best != nullptr ? Json(best->more.resource) : Json(nullptr)},
            {"better_policy", better != nullptr ? Json(better->policy) : Json(nullptr)},
            {"factor", e.factor},
            {"set", e.settings},
            {"simulated_step_s", median_s(e.simulated)},
            {"resources", resources},
            {"policies", policies},
            {"run", e.run}};
  put_origin(json, e.origin);
  return json;
}

}  // namespace tandem
