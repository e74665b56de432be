// The answer of a comparison of policies, in a sentence.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/units.hpp"
#include "report/held_words.hpp"
#include "report/policy_comparison.hpp"

namespace tandem {
namespace {

double step_s(const PolicyRun& run) { return policy_figure("step_s").of(run.result); }

// Faster by any amount; with a largest size, what trains the larger model.
bool better(const PolicyComparison& comparison, const PolicyRun& a, const PolicyRun& b) {
  if (comparison.largest.empty()) return step_s(a) < step_s(b);
  return a.largest.value_or(0) > b.largest.value_or(0);
}

std::vector<const PolicyRun*> ranked(const PolicyComparison& comparison, const std::string& value) {
  std::vector<const PolicyRun*> runs;
  for (const PolicyRun& run : comparison.runs)
    if (run.ran() && run.value == value) runs.push_back(&run);
  std::stable_sort(runs.begin(), runs.end(),
                   [&](const PolicyRun* a, const PolicyRun* b) { return better(comparison, *a, *b); });
  return runs;
}

std::string held(const PolicyComparison& comparison, const PolicyRun& run) {
  const auto at = run.result.find("limited_by");
  if (at == run.result.end()) return "";
  return "; " + held_words({at->at("cause").get<std::string>(), at->at("share").get<double>()}, comparison.gpu,
                           comparison.optimizer);
}

std::string of_one_scenario(const PolicyComparison& comparison) {
  const std::vector<const PolicyRun*> runs = ranked(comparison, "");
  const std::size_t all = comparison.runs.size();
  if (runs.empty()) return fmt::format("None of {} policies can run this scenario.", all);
  const PolicyRun& best = *runs.front();
  std::string text;
  if (!comparison.largest.empty())
    text = fmt::format("{} trains the largest model, with {} {}", best.policy, comparison.largest,
                       best.largest.value_or(0));
  else
    text =
        fmt::format("{} is the fastest: {} a step{}", best.policy, format_time(step_s(best)), held(comparison, best));
  if (runs.size() > 1)
    text += comparison.largest.empty()
                ? fmt::format("; {} comes next and takes {:.2f} times as long", runs[1]->policy,
                              step_s(*runs[1]) / step_s(best))
                : fmt::format("; {} comes next with {}", runs[1]->policy, runs[1]->largest.value_or(0));
  if (runs.size() < all) text += fmt::format("; {} of {} cannot run it", all - runs.size(), all);
  return text + ".";
}

std::string over_values(const PolicyComparison& comparison) {
  std::map<std::string, std::string> values_of;  // by policy: where it is best
  std::string none;
  for (const std::string& value : comparison.values) {
    const std::vector<const PolicyRun*> runs = ranked(comparison, value);
    std::string& values = runs.empty() ? none : values_of[runs.front()->policy];
    values += (values.empty() ? "" : ", ") + value;
  }
  std::string text;
  for (const auto& [policy, values] : values_of)
    text += fmt::format("{}{} is {} at {}", text.empty() ? "" : "; ", policy,
                        comparison.largest.empty() ? "the fastest" : "the one that trains most", values);
  if (text.empty()) return fmt::format("No policy runs at any value of {}.", comparison.over);
  if (!none.empty()) text += "; none runs at " + none;
  return "By " + comparison.over + ": " + text + ".";
}

}  // namespace

std::string policies_sentence(const PolicyComparison& comparison) {
  return comparison.over.empty() ? of_one_scenario(comparison) : over_values(comparison);
}

}  // namespace tandem
