#include "report/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/staleness.hpp"
#include "analysis/tier_capacity.hpp"
#include "core/base/shell_text.hpp"
#include "core/scenario/ranks.hpp"
#include "report/held_words.hpp"
#include "report/provenance.hpp"

namespace tandem {
namespace {

constexpr int kBarWidth = 60;

struct CauseStyle {
  const char* cause;
  const char* label;
  char letter;
  int colour;
};
constexpr CauseStyle kCauses[] = {
    {"h2d", "exposed h2d", 'h', 34},
    {"d2h", "exposed d2h", 'd', 36},
    {"cpu_optimizer", "cpu optimizer", 'o', 35},
    {"cpu_compute", "cpu compute", 'p', 35},
    {"disk", "disk", 'k', 31},
    {"collective", "collective", 'c', 33},
    {"p2p", "p2p", 'x', 33},
    {"loader", "loader", 'l', 33},
    {"dispatch", "dispatch", '.', 90},
    {"no_work", "no work", '_', 90},
};

constexpr std::size_t kLabelColumns = 13;
std::string line(const char* label, const std::string& text, std::size_t columns = kAnyColumns) {
  return fmt::format("{:<12} {}\n", label, wrapped(text, columns, kLabelColumns));
}

// The first, and those that followed it: "resident, balanced after step 40".
std::string policies_text(const RunRecord& record) {
  constexpr std::size_t kMostTold = 4;
  std::string text = record.scenario->policy.name;
  std::size_t count = 0;
  const auto add = [&](const std::string& name, std::int32_t after_step) {
    if (++count <= kMostTold) text += fmt::format(", {} after step {}", name, after_step);
  };
  for (const PolicySwitch& to : record.scenario->switches) add(to.policy.name, to.after_step);
  for (const AdaptDecision& decision : record.adaptation)
    if (decision.switches) add(decision.chosen, decision.after_step);
  return count > kMostTold ? text + fmt::format(" and {} more", count - kMostTold) : text;
}

std::string headline(const Analysis& analysis) {
  const RunRecord& record = *analysis.record;
  return fmt::format("{} · {} · policy {} · {} · {} step{} · {}", terminal_text(record.scenario->workload.family),
                     terminal_text(record.scenario->machine.name), terminal_text(policies_text(record)), record.mode,
                     analysis.run.steps, analysis.run.steps == 1 ? "" : "s",
                     terminal_text(record.scenario->product.whose));
}

std::string step_line(const Analysis& analysis) {
  std::string text = format_time(analysis.step_s.median);
  if (const auto& interval = analysis.step_interval)
    text += ", 90% interval " + format_range(interval->low, interval->high);
  if (analysis.run.times_ns.size() > 1)
    text += fmt::format(" (p10 {}, p90 {})", format_time(analysis.step_s.p10), format_time(analysis.step_s.p90));
  return text + fmt::format(" · head {}, tail {}", format_time(seconds(analysis.run.head_ns)),
                            format_time(seconds(analysis.run.tail_ns)));
}

std::string throughput_line(const Analysis& analysis) {
  std::string text = fmt::format("{} samples/s", format_count(analysis.samples_per_s));
  if (analysis.tokens_per_s > 0) text = fmt::format("{} tokens/s, ", format_count(analysis.tokens_per_s)) + text;
  return text;
}

// A text's first token, and all of them; or images, and their steps.
std::string generated_line(const Analysis& analysis) {
  if (!analysis.generated) return "";
  const Generated& of = *analysis.generated;
  if (of.images_per_s > 0)
    return fmt::format("{} images/s; {} a step", format_count(of.images_per_s),
                       format_time(of.token_s > 0 ? of.token_s : of.first_token_s));
  std::string text =
      fmt::format("{} tokens/s; first token after {}", format_count(of.tokens_per_s), format_time(of.first_token_s));
  if (of.token_s > 0) text += fmt::format(", then {} a token of each text", format_time(of.token_s));
  if (of.unused)
    text += fmt::format(
        "; beside these, {} of the prompts' tokens are padding, and {} of the new ones come after their "
        "text's end",
        format_percent(of.unused->of_prompts), format_percent(of.unused->of_new_tokens));
  return of.has_cache ? text : text + "; without a cache: each token computes its whole text again";
}

std::string model_line(const Analysis& analysis) {
  const auto count = [](std::int64_t n) { return format_count(static_cast<double>(n)); };
  std::string text = count(analysis.parameters) + " parameters";
  if (const WorkloadOptions& w = analysis.record->scenario->workload; !w.trained.empty() || w.lora.rank > 0)
    text += ", " + count(analysis.trained_parameters) + " of them trained";
  if (analysis.compressed_parameters > 0)
    text += fmt::format(", {} kept in {} bits", count(analysis.compressed_parameters),
                        analysis.record->scenario->workload.compress.weights);
  if (analysis.model_flops_per_s <= 0) return text;
  text += fmt::format(", {}FLOP/s", format_count(analysis.model_flops_per_s));
  if (analysis.flop_use > 0)
    text += fmt::format(": {} of the {} peak (MFU)", format_percent(analysis.flop_use),
                        name_of(analysis.record->scenario->workload.precision));
  return text;
}

std::string profile_line(const Analysis& analysis) {
  std::string text = terminal_text(provenance(analysis.record->scenario->machine));
  if (analysis.record->mode == "measured" || analysis.step_interval) return text;
  return text + ": no error bar";
}

// Which ops the step time rests on: those that were measured one by one, and those that are modelled.
std::string measured_line(const MeasuredShare& of) {
  constexpr std::size_t kMostTold = 3;
  std::string text = fmt::format("{} of computing in {} measured op{}", format_percent(of.share), of.measured,
                                 of.measured == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(kMostTold, of.modelled.size()); ++i)
    text += fmt::format("{} {} {}", i == 0 ? "; modelled:" : ",", terminal_text(of.modelled[i].first),
                        format_percent(of.modelled[i].second));
  if (of.modelled.size() > kMostTold) text += fmt::format(" and {} more", of.modelled.size() - kMostTold);
  return text;
}

// What the first step takes beyond one that repeats, beside the mean over the run.
std::string start_up_line(const Analysis& analysis) {
  constexpr double kTold = 0.05;
  const double start_s = seconds(analysis.run.head_ns) - analysis.step_s.median;
  const double share = start_s / std::max(1e-9, seconds(analysis.run.makespan_ns));
  if (analysis.run.times_ns.empty() || share < kTold) return "";
  return fmt::format("{} beyond a step: {} of the mean over the whole run, {} a step", format_time(start_s),
                     format_percent(share), format_time(analysis.mean_step_s));
}

std::string held_line(const Analysis& analysis) {
  const Scenario& scenario = *analysis.record->scenario;
  std::string text = held_words(analysis.holder, scenario.machine.gpu, scenario.optimizer.name);
  if (scenario.path.empty()) return text;
  const std::string file = terminal_text(shell_path(scenario.path));
  return text + "; what would help: tandem explain " + file + "; better policies: tandem compare-policies " + file;
}

// Of many devices the fullest, unless `all` are asked for.
using Peak = std::pair<std::string, std::int64_t>;
std::vector<Peak> peaks_to_show(const Analysis& analysis, bool all) {
  const auto devices = static_cast<std::ptrdiff_t>(analysis.record->ranks.size());
  std::vector<Peak> peaks = analysis.peak_bytes;
  if (all || devices <= 2) return peaks;
  const auto end = peaks.begin() + devices;
  const Peak fullest =
      *std::max_element(peaks.begin(), end, [](const Peak& a, const Peak& b) { return a.second < b.second; });
  peaks.erase(peaks.begin(), end - 1);
  peaks.front() = fullest;
  return peaks;
}

// Where ranks stand for others.
std::string folded_words(const RunRecord& record) {
  if (!record.scenario->parallel.fold && record.told.empty()) return "";
  return fmt::format(" that stand for {}", device_count(*record.scenario));
}

std::string memory_lines(const Analysis& analysis, bool all) {
  std::string text;
  for (const auto& [tier, peak] : peaks_to_show(analysis, all)) {
    if (tier == "host_pinned" || (tier == "disk" && peak == 0)) continue;
    const std::int64_t capacity = capacity_of_peak(*analysis.record->scenario, tier);
    const double share = capacity > 0 ? static_cast<double>(peak) / static_cast<double>(capacity) : 0;
    const std::vector<BarPart> parts{{"", '#', 32, share}, {"", ' ', 0, 1 - share}};
    text += line(text.empty() ? "peak memory" : "",
                 fmt::format("{:<8} [{}] {} of {} ({})", tier, bar(parts, kBarWidth / 3, {}), format_bytes(peak),
                             format_bytes(capacity), format_percent(share)));
    const bool of_several = analysis.record->ranks.size() > 2 || !analysis.record->told.empty();
    if (!all && text.find('\n') == text.size() - 1 && of_several)
      text.insert(text.size() - 1,
                  fmt::format(", of {}{}", analysis.record->ranks.size(), folded_words(*analysis.record)));
  }
  return text;
}

// Of all devices together and without scalars, unless `all` is asked for.
std::string traffic_line(const Analysis& analysis, bool all) {
  std::vector<std::pair<std::string, std::int64_t>> moved;
  for (const LaneReport& lane : analysis.lanes) {
    const bool small = lane.lane.kind() == Engine::H2DSmall || lane.lane.kind() == Engine::D2HSmall;
    if (lane.use.bytes == 0 || (small && !all)) continue;
    const std::string name =
        all ? lane_name(lane.rank, lane.lane)
            : std::string(lane.lane.kind() == Engine::Compute ? "on device" : name_of(lane.lane.kind()));
    const auto same = std::find_if(moved.begin(), moved.end(), [&](const auto& m) { return m.first == name; });
    if (same != moved.end())
      same->second += lane.use.bytes;
    else
      moved.emplace_back(name, lane.use.bytes);
  }
  std::string text;
  for (const auto& [name, bytes] : moved)
    text += (text.empty() ? "" : ", ") + fmt::format("{} {}", name, format_bytes(bytes));
  return text.empty() ? "none" : text + " over the whole run";
}

// Of all stages that are known, and the extremes.
std::string bubble_line(const std::vector<StageShare>& stages) {
  const auto waits_less = [](const StageShare& a, const StageShare& b) { return a.waiting < b.waiting; };
  const auto [least, most] = std::minmax_element(stages.begin(), stages.end(), waits_less);
  if (stages.size() == 1) return fmt::format("{} of the step, in stage {}", format_percent(most->waiting), most->stage);
  return fmt::format("{} of the step, mean of {} stages: {} in stage {} to {} in stage {}",
                     format_percent(waiting_share(stages)), stages.size(), format_percent(least->waiting), least->stage,
                     format_percent(most->waiting), most->stage);
}

std::string staleness_line(const Staleness& of) {
  return fmt::format("{:.1f} updates of others since a worker got its parameters, mean of {}; {} at most", of.mean,
                     of.updates, of.most);
}

std::string evicted_line(const Analysis& analysis) {
  std::string text;
  for (const auto& [tier, bytes] : analysis.evicted_bytes)
    text += fmt::format("{}{} to {}", text.empty() ? "" : ", ", format_bytes(bytes), tier);
  return text + " to make room, over the whole run: the policy had not sent it there";
}

std::string held_text(const std::string& held_by) {
  return held_by == "shares" ? "held by several resources together" : "held by " + held_by;
}

std::string bound_line(const Analysis& analysis, double bound_s, const std::string& held_by) {
  if (bound_s <= 0) return "none";
  const double step_s = analysis.steady_step_s;
  const double above = step_s / bound_s - 1;
  const char* why_below = analysis.record->mode == "simulated"
                              ? "the first steps have done some of its work ahead, or noise is fast"
                              : "the profile is slower than the machine";
  const std::string distance =
      above < -0.0005
          ? fmt::format("the mean step of {} is below it: {}", format_time(step_s), why_below)
          : fmt::format("the mean step of {} is {} above", format_time(step_s), format_percent(std::max(0.0, above)));
  return fmt::format("{}, {}; {}", format_time(bound_s), held_text(held_by), distance);
}

std::string pinning_line(const RunRecord& record) {
  std::string text = format_time(record.pinning_s) + " for all host memory that the run may use, before it began";
  if (record.far_host_bytes > 0) text += "; " + format_bytes(record.far_host_bytes) + " of it are far from the cores";
  return text;
}

// Each part whole on a line.
std::string legend(const std::vector<BarPart>& parts, std::size_t columns) {
  constexpr double kShown = 0.0005;  // what is less is shown as 0.0%
  std::string text;
  std::size_t at = kLabelColumns;
  for (const BarPart& part : parts) {
    if (part.share < kShown && columns != kAnyColumns) continue;
    const std::string entry = fmt::format("{} {} {}", part.letter, part.name, format_percent(part.share));
    const bool breaks = !text.empty() && columns != kAnyColumns && at + 2 + entry.size() > columns;
    const std::string before = breaks ? "\n" + std::string(kLabelColumns, ' ') : text.empty() ? "" : "  ";
    at = (breaks ? kLabelColumns : at + before.size()) + entry.size();
    text += before + entry;
  }
  return text;
}

std::string loss_line(const Analysis& analysis) {
  return fmt::format("{:.4f} in the first step, {:.4f} in the last", analysis.loss.front(), analysis.loss.back());
}

std::string validation_line(const Analysis& analysis) {
  const auto better = [](const Validation& a, const Validation& b) { return a.loss < b.loss; };
  const auto& all = analysis.validation_loss;
  const Validation& least = *std::min_element(all.begin(), all.end(), better);
  std::string text = fmt::format("{:.4f} after step {}", all.back().loss, all.back().step);
  if (least.step != all.back().step)
    text += fmt::format("; the least was {:.4f} after step {}", least.loss, least.step);
  return text;
}

std::string skipped_line(const Analysis& analysis) {
  std::string text = fmt::format("{} of {} steps", analysis.skipped_steps, analysis.run.steps);
  if (analysis.skipped_steps > 0) text += ": a gradient was not finite, so nothing was updated";
  if (analysis.loss_scale) text += fmt::format("; the loss scale is {:g} after the last", *analysis.loss_scale);
  return text;
}

}  // namespace

std::vector<BarPart> step_parts(const Analysis& analysis) {
  std::vector<BarPart> parts{{"compute", '#', 32, analysis.compute_s}};
  for (const CauseStyle& style : kCauses) {
    const auto found = analysis.exposed_s.find(style.cause);
    if (found != analysis.exposed_s.end() && found->second > 0)
      parts.push_back({style.label, style.letter, style.colour, found->second});
  }
  double total = 0;
  for (const BarPart& part : parts) total += part.share;
  for (BarPart& part : parts) part.share = total > 0 ? part.share / total : 0;
  return parts;
}

std::string bar(const std::vector<BarPart>& parts, int width, SummaryStyle style) {
  std::string text;
  double until = 0;
  int filled = 0;
  for (const BarPart& part : parts) {
    until += part.share;
    const int end = std::clamp(static_cast<int>(std::lround(until * width)), filled, width);
    const std::string stretch(static_cast<std::size_t>(end - filled), part.letter);
    const bool coloured = style.colour && part.colour != 0 && !stretch.empty();
    text += coloured ? fmt::format("\x1b[{}m{}\x1b[0m", part.colour, stretch) : stretch;
    filled = end;
  }
  return text + std::string(static_cast<std::size_t>(width - filled), ' ');
}

std::string terminal_text(std::string_view text) {
  std::string clean;
  for (const char c : text) clean += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return clean;
}

std::string summary(const Analysis& analysis, SummaryStyle style) {
  const bool all = style.columns == kAnyColumns;
  std::string text = wrapped(headline(analysis), style.columns) + "\n";
  const auto add = [&](const char* label, const std::string& words) {
    if (!words.empty()) text += line(label, words, style.columns);
  };
  if (analysis.run.steps == 0) return text + line("step time", "no training step was completed");
  add("step time", step_line(analysis));
  const std::vector<BarPart> parts = step_parts(analysis);
  text += line("goes to", fmt::format("[{}]", bar(parts, kBarWidth, style)));
  text += line("", legend(parts, style.columns));
  if (!analysis.stages.empty()) add("bubble", bubble_line(analysis.stages));
  if (const auto missed = staleness(*analysis.record->scenario, analysis.run.steps))
    add("staleness", staleness_line(*missed));
  add("start-up", start_up_line(analysis));
  add("throughput", throughput_line(analysis));
  add(analysis.generated && analysis.generated->images_per_s > 0 ? "sampled" : "generated", generated_line(analysis));
  add("model", model_line(analysis));
  text += memory_lines(analysis, all);
  add("moved", traffic_line(analysis, all));
  if (!analysis.evicted_bytes.empty()) add("evicted", evicted_line(analysis));
  add("lower bound", bound_line(analysis, analysis.bound.overall(), analysis.bound.held_by));
  add("of policy", bound_line(analysis, analysis.bound.policy_step_s, analysis.bound.policy_held_by));
  if (analysis.record->totals != nullptr)
    add("in detail", fmt::format("the first {} steps: stalls, bounds and traces; the rest is of all steps",
                                 analysis.steps.ends_ns.size()));
  if (analysis.checkpoint_s > 0)
    add("checkpoints", fmt::format("{} of saving over the whole run", format_time(analysis.checkpoint_s)));
  if (!analysis.loss.empty()) add("loss", loss_line(analysis));
  if (!analysis.validation_loss.empty()) add("validation", validation_line(analysis));
  if (analysis.skipped_steps > 0 || analysis.loss_scale) add("skipped", skipped_line(analysis));
  if (analysis.record->pinning_s > 0) add("pinning", pinning_line(*analysis.record));
  if (analysis.record->mode == "simulated" && analysis.record->wall_s > 0)
    add("simulated",
        fmt::format("{} commands in {} of wall clock", format_count(static_cast<double>(analysis.run.commands)),
                    format_time(analysis.record->wall_s)));
  add("profile", profile_line(analysis));
  if (analysis.measured.any) add("rests on", measured_line(analysis.measured));
  add("limited by", held_line(analysis));
  return text;
}

}  // namespace tandem
