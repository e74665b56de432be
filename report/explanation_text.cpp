// An explanation for people, and for programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/units.hpp"
#include "report/explanation.hpp"
#include "report/summary.hpp"
#include "report/wrap.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// Policies of which so many are shown, be they slower.
constexpr std::size_t kLeastPolicies = 3;

double number(const Json& json, const char* key) { return json.at(key).get<double>(); }

std::string path_row(const std::string& cause, const std::string& what, double seconds, double step_s) {
  return fmt::format("  {:<14} {:<36} {:>9} {:>7}\n", cause, terminal_text(what), format_time(seconds),
                     format_percent(seconds / step_s));
}

std::string path_text(const Explanation& e) {
  const double step_s = number(e.run, "steady_step_s");
  std::string text = fmt::format("\ncritical path of a step, {} in the mean\n", format_time(step_s));
  for (const ShownPart& part : shown_path(e)) text += path_row(part.cause, part.what, part.seconds, step_s);
  return text;
}

std::string roofline_text(const Explanation& e, std::size_t columns) {
  const std::string words = roofline_words(e);
  if (words.empty()) return "";
  return fmt::format("\nroofline of the {}\n  {}\n", e.gpu ? "GPU" : "device", wrapped(words, columns, 2));
}

std::string row(const std::string& name, const Explanation& e, double with_s, const char* remark) {
  const double now_s = e.others.now_s, share = 1 - with_s / now_s;
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

std::string resources_text(const Explanation& e, std::size_t columns) {
  // What is less is shown as 0.0%.
  constexpr double kShown = 0.0005;
  std::string text = table_head(fmt::format("{:.0f}% more", 100 * (e.others.factor - 1)));
  Merged others;
  for (const auto& [more, with] : fastest_first(e.others.resources)) {
    if (!with.step_s)
      others.add("not simulated, " + with.why_not, more.words);
    else if (std::abs(*e.others.saved_share(with)) < kShown)
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
  for (const OtherPolicy& other : fastest_first(e.others.policies)) {
    if (!other.with.step_s)
      others.add("not possible", other.policy);
    else if (shown >= kLeastPolicies && *e.others.saved_share(other.with) <= 0 && columns != kAnyColumns)
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
          {"saves_s", e.others.now_s - *with.step_s},
          {"saves_share", *e.others.saved_share(with)}};
}

}  // namespace

std::string explanation_text(const Explanation& e, std::size_t columns) {
  std::string text = wrapped(sentence(e), columns) + "\n\n" + wrapped(terminal_text(step_words(e)), columns) + "\n" +
                     path_text(e) + roofline_text(e, columns);
  if (!e.others.resources.empty()) text += resources_text(e, columns);
  if (!e.others.policies.empty()) text += policies_text(e, columns);
  return text;
}

Json explanation_json(const Explanation& e) {
  Json resources = Json::array(), policies = Json::array();
  for (const WorthOfMore& worth : e.others.resources) {
    Json one = {{"resource", worth.more.resource}, {"words", worth.more.words}, {"set", worth.more.settings}};
    one.update(alternative(e, worth.with));
    resources.push_back(std::move(one));
  }
  for (const OtherPolicy& other : e.others.policies) {
    Json one = {{"policy", other.policy}, {"approximate", other.approximate}};
    one.update(alternative(e, other.with));
    policies.push_back(std::move(one));
  }
  const WorthOfMore* best = worth_most(e.others);
  const OtherPolicy* better = better_policy(e.others);
  Json json{{"schema", 1},
            {"sentence", sentence(e)},
            {"limited_by", e.run.at("limited_by")},
            {"worth_most", best != nullptr ? Json(best->more.resource) : Json(nullptr)},
            {"better_policy", better != nullptr ? Json(better->policy) : Json(nullptr)},
            {"factor", e.others.factor},
            {"set", e.settings},
            {"simulated_step_s", e.others.now_s},
            {"resources", resources},
            {"policies", policies},
            {"run", e.run}};
  put_origin(json, e.origin);
  return json;
}

}  // namespace tandem
