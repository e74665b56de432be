#include "report/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.hpp"
#include "report/held_words.hpp"

namespace tandem {
namespace {

// What is less than this share of the step, more of a resource does not save.
constexpr double kLeastSaved = 0.005;
// A policy that is faster by less may be so by chance.
constexpr double kLeastBetter = 0.01;
// A part of a resource is named instead of it where it saves nearly as much.
constexpr double kNearlyAll = 0.8;

double step_s(const nlohmann::ordered_json& result) { return result.at("step_time_s").at("median").get<double>(); }

bool simulated_all(const Explanation& explanation) {
  return std::all_of(explanation.resources.begin(), explanation.resources.end(),
                     [](const WorthOfMore& worth) { return worth.with.step_s.has_value(); });
}

}  // namespace

std::optional<double> saved_share(const Explanation& explanation, const Alternative& alternative) {
  const double now_s = step_s(explanation.simulated);
  if (!alternative.step_s || now_s <= 0) return std::nullopt;
  return 1 - *alternative.step_s / now_s;
}

const WorthOfMore* worth_most(const Explanation& explanation) {
  const WorthOfMore* best = nullptr;
  double most = kLeastSaved;
  for (const WorthOfMore& worth : explanation.resources)
    if (const auto saved = saved_share(explanation, worth.with); saved && *saved >= most) {
      best = &worth;
      most = *saved;
    }
  if (best == nullptr) return nullptr;
  const WorthOfMore* part = nullptr;
  double of_part = kNearlyAll * most;
  for (const WorthOfMore& worth : explanation.resources)
    if (const auto saved = saved_share(explanation, worth.with);
        worth.more.part_of == best->more.resource && saved && *saved >= of_part) {
      part = &worth;
      of_part = *saved;
    }
  return part != nullptr ? part : best;
}

const OtherPolicy* better_policy(const Explanation& explanation) {
  const OtherPolicy* best = nullptr;
  double least_s = step_s(explanation.simulated) * (1 - kLeastBetter);
  for (const OtherPolicy& other : explanation.policies)
    if (!other.approximate && other.with.step_s && *other.with.step_s <= least_s) {
      best = &other;
      least_s = *other.with.step_s;
    }
  return best;
}

std::string sentence(const Explanation& explanation) {
  const auto& held = explanation.run.at("limited_by");
  std::string text = held_words({held.at("cause").get<std::string>(), held.at("share").get<double>()}, explanation.gpu,
                                explanation.optimizer);
  text.front() = 'T';
  const bool measured = explanation.run.at("mode") == "measured";
  if (measured) text += "; by simulation";
  const char* then = measured ? ", " : "; ";
  const std::string percent = fmt::format("{:.0f}%", 100 * (explanation.factor - 1));
  if (const WorthOfMore* best = worth_most(explanation))
    text += fmt::format("{}{} more {} would save {} of it", then, percent, best->more.words,
                        format_percent(*saved_share(explanation, best->with)));
  else if (std::any_of(explanation.resources.begin(), explanation.resources.end(),
                       [](const WorthOfMore& worth) { return worth.with.step_s.has_value(); }))
    text += fmt::format("{}{} more of any one resource{} would save less than {} of it", then, percent,
                        simulated_all(explanation) ? "" : " that could be simulated", format_percent(kLeastSaved));
  if (const OtherPolicy* better = better_policy(explanation))
    text += fmt::format("; {} would take {} instead of {}", better->policy, format_time(*better->with.step_s),
                        format_time(step_s(explanation.simulated)));
  else if (!explanation.policies.empty())
    text += fmt::format("; of {} other polic{} none is faster", explanation.policies.size(),
                        explanation.policies.size() == 1 ? "y" : "ies");
  return text + ".";
}

}  // namespace tandem
