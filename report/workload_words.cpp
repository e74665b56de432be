// Sentences about a workload.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.hpp"
#include "report/workload_report.hpp"

namespace tandem {
namespace {

std::string joined(const std::vector<std::string>& words, const char* last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? last : std::string(", ")) + words[i];
  return text;
}

std::string setting(const PlacementTrial& trial) {
  return fmt::format("--set 'policy.cpu_modules=\"{}\"'", trial.on_cpu);
}

std::string change(double with_s, double now_s) {
  const std::string steps = fmt::format("a step takes {} instead of {}", format_time(with_s), format_time(now_s));
  const double share = with_s / now_s - 1;
  if (std::abs(share) < kWorthIt) return fmt::format("a step takes as long, {}", format_time(with_s));
  return steps + fmt::format(", {} {}", format_percent(std::abs(share)), share < 0 ? "less" : "more");
}

std::string times_as_long(const GroupReport& g, const char* device) {
  const double cpu = g.costs.cpu.seconds, own = g.costs.device.seconds;
  const std::string both = fmt::format("{} against {}", format_time(cpu), format_time(own));
  if (cpu >= own && own > 0) return fmt::format("the CPU would take {:.3g} times as long: {}", cpu / own, both);
  return fmt::format("the CPU would take {} of the {}'s time: {}", format_percent(cpu / std::max(own, 1e-12)), device,
                     both);
}

// Of a group that was not tried: what rules it out.
std::string ruled_out(const WorkloadReport& r, const GroupReport& g) {
  std::string text = times_as_long(g, r.device_word());
  if (g.costs.transfer_s > 0) text += fmt::format(" and {} of copies", format_time(g.costs.transfer_s));
  const double hides = g.independent_s + r.waits_s();
  if (hides <= 0) return text + ", and no other op hides it";
  return text + fmt::format(", and no more than {} of other work and waits could hide it", format_time(hides));
}

// Of a refusal, which goes on with all that lies there.
std::string where_it_does_not(std::string reason) {
  constexpr std::string_view kBegin = "does not fit: ";
  if (reason.starts_with(kBegin)) reason.erase(0, kBegin.size());
  return reason.substr(0, reason.find("; "));
}

const PlacementTrial* fastest(const GroupReport& g) {
  const PlacementTrial* best = nullptr;
  for (const PlacementTrial& trial : g.trials)
    if (trial.step_s && (best == nullptr || *trial.step_s < *best->step_s)) best = &trial;
  return best;
}

std::string tried(const WorkloadReport& r, const GroupReport& g) {
  const PlacementTrial* best = fastest(g);
  if (best == nullptr) {
    const PlacementTrial& first = g.trials.front();
    return fmt::format("with {} on the {}: {}", first.modules, first.to_cpu ? "CPU" : r.device_word(),
                       first.does_not_fit ? "it does not fit: " + where_it_does_not(first.why_not) : first.why_not);
  }
  const std::string where = fmt::format("with {} on the {} ", best->modules, best->to_cpu ? "CPU" : r.device_word());
  if (!r.step_s) return where + fmt::format("it fits, and a step takes {}", format_time(*best->step_s));
  return where + change(*best->step_s, *r.step_s) + " (simulated)" +
         (g.alone_faster ? "; not so beside the modules that are suggested" : "");
}

}  // namespace

std::string title_of(const GroupReport& group) {
  const std::size_t count = group.group.modules.size();
  if (count == 1) return group.words;
  if (group.words.find(',') != std::string::npos)
    return fmt::format("{} +{}", group.words.substr(0, group.words.find_first_of(",.")), count - 1);
  std::string stem = group.words.substr(0, group.words.rfind(".."));
  stem.erase(stem.find_last_not_of("0123456789") + 1);
  stem.erase(stem.find_last_not_of("_.") + 1);
  return fmt::format("{} x{}", stem, count);
}

std::string answer(const WorkloadReport& r) {
  const char* device = r.device_word();
  if (!r.step_s && !r.best)
    return fmt::format("It does not fit, nor with modules on the CPU: {}.", where_it_does_not(r.why_not));
  if (!r.step_s)
    return fmt::format("It does not fit; with {} it does, and a step takes {} (simulated).", setting(*r.best),
                       format_time(*r.best->step_s));
  if (r.best) return fmt::format("With {} {} (simulated).", setting(*r.best), change(*r.best->step_s, *r.step_s));
  std::size_t on_cpu = 0, tried_groups = 0;
  for (const GroupReport& g : r.groups) on_cpu += g.on_cpu, tried_groups += g.trials.empty() ? 0 : 1;
  return fmt::format(
      "{} a step takes {}; {}.",
      on_cpu == 0 ? fmt::format("All modules belong on the {}:", device) : "All modules are well placed:",
      format_time(*r.step_s),
      tried_groups == 0 ? std::string("none could be as fast elsewhere")
                        : fmt::format("{} could pay elsewhere, and {} faster there in a simulation",
                                      tried_groups == 1 ? "one kind" : fmt::format("{} kinds", tried_groups),
                                      tried_groups == 1 ? "was not" : "none was"));
}

std::string place_of(const WorkloadReport& r, const GroupReport& g) {
  if (g.suggested_on_cpu == 0) return r.device_word();
  if (g.suggested_on_cpu == g.group.modules.size()) return "CPU";
  return fmt::format("CPU {}/{}", g.suggested_on_cpu, g.group.modules.size());
}

std::string reason_of(const WorkloadReport& r, const GroupReport& g) {
  return g.trials.empty() ? ruled_out(r, g) : tried(r, g);
}

std::string sentence_of(const WorkloadReport& r, const Meeting& meeting) {
  std::vector<std::string> branches;
  for (const Meeting::Branch& branch : meeting.branches) {
    const std::vector<std::string_view> names = names_of(branch.modalities);
    const std::string what = joined({names.begin(), names.end()}, " and ");
    branches.push_back(r.step_s ? fmt::format("{} from {} after {}", what, branch.module, format_time(branch.ready_s))
                                : fmt::format("{} from {}", what, branch.module));
  }
  std::string text = fmt::format("{} needs {}", r.groups[meeting.group].words, joined(branches, " and "));
  if (!r.step_s || meeting.branches.size() < 2) return text + ".";
  const Meeting::Branch &first = meeting.branches.front(), &last = meeting.branches.back();
  return text +
         fmt::format(": {} waits {} for {}.", first.module, format_time(last.ready_s - first.ready_s), last.module);
}

std::string stand_in_remark() {
  return "a CPU stands in for the device (compute.processor): what pays between the two says nothing of a GPU";
}

std::string input_sentence(const WorkloadReport& r) {
  const InputTimes& in = r.input;
  if (!r.step_s) return "Not known of a run that does not fit.";
  if (in.load_s <= 0) return "Loading the batch takes no time in this profile.";
  std::string text = fmt::format(
      "{} fills {} a step in {}{}, beside {} of compute; ", in.body, format_bytes(in.bytes), format_time(in.load_s),
      in.copy_s > 0 ? fmt::format(", copied in {}", format_time(in.copy_s)) : "", format_time(in.compute_s));
  if (in.exposed_s >= kWorthIt * *r.step_s)
    return text + fmt::format("the {} waits {} a step for it.", r.device_word(), format_time(in.exposed_s));
  return text + fmt::format("the loader waits for the {}.", r.device_word());
}

}  // namespace tandem
