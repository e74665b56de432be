#include "plan/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/units.hpp"
#include "core/run/advice.hpp"
#include "core/transforms/common/entry.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostPlans = 3;

int policy_of(const Tried& tried) { return tried.point.empty() ? 0 : tried.point.front(); }

std::string name_of_policy(const Space& space, const Tried& tried) {
  return space.axes.empty() || space.axes.front().name != "policy"
             ? "the policy"
             : space.axes.front().choices[static_cast<std::size_t>(policy_of(tried))].words;
}

Plan plan_of(const Space& space, const Tried& tried) {
  Plan plan{settings_of(space, tried.point), words_of(space, tried.point), tried.run, {}, tried.others};
  for (std::size_t i = 0; i < tried.point.size(); ++i)
    if (const Choice& choice = space.axes[i].choices[static_cast<std::size_t>(tried.point[i])]; !choice.costs.empty())
      plan.costs.push_back({choice.words, choice.costs, choice.other_mathematics});
  for (const std::string& name : tried.run.rewrites)
    if (const TransformEntry* entry = find_transform(name))
      plan.costs.push_back({name_of_policy(space, tried), std::string(entry->summary), true});
  return plan;
}

// The one to take, and the best of each other policy and strategy.
std::vector<Plan> best_plans(const Space& space, const Found& found) {
  const std::vector<std::size_t> ranked = found.ranked();
  std::vector<Plan> plans;
  if (ranked.empty()) return plans;
  std::vector<std::pair<int, int>> told;
  const auto add = [&](std::size_t i) {
    const std::pair kind{policy_of(found.tried[i]), strategy_of(space, found.tried[i].point)};
    if (plans.size() >= kMostPlans || std::find(told.begin(), told.end(), kind) != told.end()) return;
    told.push_back(kind);
    plans.push_back(plan_of(space, found.tried[i]));
  };
  add(pick(found));
  for (std::size_t i : ranked) add(i);
  return plans;
}

std::optional<Plan> best_exact(const Space& space, const Found& found) {
  for (std::size_t i : found.ranked())
    if (found.tried[i].others == 0) return plan_of(space, found.tried[i]);
  return std::nullopt;
}

// At least, as a part of what there is.
double lacking(const OutOfRoom::Figures& refusal) {
  return static_cast<double>(refusal.least_bytes - refusal.capacity_bytes) /
         static_cast<double>(std::max<std::int64_t>(refusal.capacity_bytes, 1));
}

// Of each policy what lacks least, and of those a few.
std::vector<const Tried*> nearly_fitting(const Found& found) {
  constexpr std::size_t kMost = 8;
  std::map<int, const Tried*> nearest;
  for (const Tried& tried : found.tried) {
    if (tried.run.kind != CandidateRun::Kind::DoesNotFit) continue;
    const auto [at, is_new] = nearest.emplace(policy_of(tried), &tried);
    if (!is_new && lacking(tried.run.refusal) < lacking(at->second->run.refusal)) at->second = &tried;
  }
  std::vector<const Tried*> all;
  for (const auto& [policy, tried] : nearest) all.push_back(tried);
  std::stable_sort(all.begin(), all.end(),
                   [](const Tried* a, const Tried* b) { return lacking(a->run.refusal) < lacking(b->run.refusal); });
  if (all.size() > kMost) all.resize(kMost);
  return all;
}

// Bytes that are needed, of all tiers; what no run found out needs most.
double needed(const Enough& enough) {
  double bytes = enough.found ? 0 : 1e30;
  for (const std::int64_t of_tier : enough.bytes) bytes += static_cast<double>(of_tier);
  return bytes;
}

void add_nearest(const Space& space, const Found& found, const FindEnough& find_enough, Answer& answer) {
  const std::vector<const Tried*> near = nearly_fitting(found);
  std::vector<Candidates::Refused> refused;
  for (const Tried* tried : near) refused.push_back({settings_of(space, tried->point), tried->run.refusal});
  const std::vector<Enough> enough = find_enough(refused);
  for (std::size_t i = 0; i < near.size(); ++i) {
    if (answer.nearest && needed(enough[i]) >= needed(answer.enough)) continue;
    answer.nearest = plan_of(space, *near[i]);
    answer.enough = enough[i];
  }
}

// "policy.rank: 64 is too large; ..." without the place, which is that of a text nobody wrote.
std::string without_place(const std::string& finding) {
  std::size_t start = 0;
  for (std::size_t colon = finding.find(": "); colon != std::string::npos; colon = finding.find(": ", colon + 1)) {
    const std::string head = finding.substr(start, colon - start);
    const bool is_key = head.find(' ') == std::string::npos && head.find(':') == std::string::npos;
    if (is_key) return finding.substr(start);
    start = colon + 2;
  }
  return finding;
}

bool runs(const Tried& tried) { return tried.ran() || tried.run.kind == CandidateRun::Kind::Slow; }

// One line a reason, with the policies of which no candidate ran for it.
std::vector<std::string> policies_ruled_out(const Space& space, const Found& found) {
  std::map<int, const Tried*> last;
  for (const Tried& tried : found.tried) {
    const auto [at, is_new] = last.emplace(policy_of(tried), &tried);
    // What ran stays; else what was refused for want of memory says more than what is not allowed.
    if (is_new || runs(*at->second)) continue;
    if (runs(tried) || at->second->run.kind != CandidateRun::Kind::DoesNotFit) at->second = &tried;
  }
  std::map<std::string, std::string> names;  // by reason
  for (const auto& [policy, tried] : last) {
    const CandidateRun& run = tried->run;
    if (runs(*tried)) continue;
    const std::string why = run.kind == CandidateRun::Kind::DoesNotFit
                                ? "too little " + std::string(memory_words(run.refusal.tier))
                                : without_place(run.why_not);
    std::string& all = names[why];
    all += (all.empty() ? "" : ", ") + name_of_policy(space, *tried);
  }
  std::vector<std::string> lines;
  for (const auto& [why, all] : names) lines.push_back(all + ": " + why);
  return lines;
}

std::string asked_for(const Question& question) {
  const PlanFlags& flags = question.flags();
  std::string words;
  const auto add = [&](const std::string& value, const char* of) {
    if (!value.empty()) words += (words.empty() ? "" : ", ") + value + of;
  };
  add(flags.host_memory, " of host memory");
  add(flags.device_memory, " of device memory");
  add(flags.disk_space, " of disk");
  if (flags.devices > 1) add(std::to_string(flags.devices), " devices");
  return words;
}

std::string subject(const Question& question) {
  if (!question.flags().model.empty()) return question.flags().model;
  const std::string stem = std::filesystem::path(question.flags().file).stem().string();
  return stem.empty() ? "the workload" : stem;
}

std::string scenario_text(const Question& question, const Plan& plan) {
  Settings settings = plan.settings;
  if (!question.fixed("steps")) settings.push_back("steps=" + std::to_string(question.base().steps));
  return question.text_with(settings);
}

}  // namespace

double price_of_million(const Answer& answer, const Plan& plan) {
  constexpr double kMillion = 1e6, kHour = 3600;
  const double per_s = plan.run.tokens_per_s > 0 ? plan.run.tokens_per_s : plan.run.samples_per_s;
  return answer.price_per_hour * static_cast<double>(answer.devices) / kHour / per_s * kMillion;
}

std::size_t fastest(const std::vector<Answer>& answers) {
  CHECK(!answers.empty(), "an answer to choose");
  const auto rate = [](const Answer& answer) {
    return answer.best.empty() ? 0 : answer.best.front().run.samples_per_s;
  };
  return static_cast<std::size_t>(
      std::max_element(answers.begin(), answers.end(),
                       [&](const Answer& a, const Answer& b) { return rate(a) < rate(b); }) -
      answers.begin());
}

Answer answer_of(const Question& question, const Space& space, const Found& found, const FindEnough& find_enough) {
  Answer answer;
  if (question.fixed("policy")) answer.policy = question.base().policy.name;
  answer.what = subject(question);
  answer.machine = question.base().machine.name;
  answer.with = asked_for(question);
  answer.devices = std::max<std::int64_t>(question.base().workload.devices, 1);
  answer.price_per_hour = question.base().machine.price_per_hour;
  answer.best = best_plans(space, found);
  if (const auto ranked = found.ranked(); !ranked.empty())
    answer.fastest_samples_per_s = found.tried[ranked.front()].run.samples_per_s;
  if (!answer.best.empty() && answer.best.front().others > 0) answer.exact = best_exact(space, found);
  if (answer.best.empty()) add_nearest(space, found, find_enough, answer);
  answer.least_bytes = found.least_bytes;
  answer.room_bytes = found.room_bytes;
  answer.ruled_out = policies_ruled_out(space, found);
  for (const std::string& why : found.refusals) answer.ruled_out.push_back(without_place(why));
  answer.counts = found.counts;
  answer.commands = found.commands;
  answer.last_resort = found.last_resort;
  answer.may_change = !question.flags().exact;
  if (!answer.best.empty()) answer.scenario = scenario_text(question, answer.best.front());
  return answer;
}

}  // namespace tandem
