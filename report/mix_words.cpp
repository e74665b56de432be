// Where the best placement changes with the mix, and sentences about it.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.hpp"
#include "report/mix_report.hpp"
#include "report/workload_report.hpp"

namespace tandem {
namespace {

double rate(const MixAtShare& point, std::size_t placement) {
  return point.runs[placement] ? point.runs[placement]->samples_per_s : 0;
}

std::string percent(double share) { return format_percent(share); }
std::string at(double share) { return fmt::format("{:.3g}", share); }

double best_rate(const MixAtShare& point) {
  double most = 0;
  for (const auto& run : point.runs) most = std::max(most, run ? run->samples_per_s : 0);
  return most;
}

bool is_worth_having(const MixReport& report, const MixAtShare& point, std::size_t placement) {
  const auto best = best_fixed(report, point);
  return best && rate(point, *best) <= rate(point, placement) * (1 + kWorthIt);
}

// The one that is worth having at most points from here on; of several the fastest here.
std::size_t longest_best(const MixReport& report, const MixSweep& sweep, std::size_t from) {
  std::size_t longest = 0, found = *best_fixed(report, sweep.points[from]);
  for (std::size_t i = 0; i < report.placements.size(); ++i) {
    if (!report.placements[i].fixed) continue;
    std::size_t at = from;
    while (at < sweep.points.size() && is_worth_having(report, sweep.points[at], i)) ++at;
    const bool faster = rate(sweep.points[from], i) > rate(sweep.points[from], found);
    if (at - from > longest || (at - from == longest && longest > 0 && faster)) longest = at - from, found = i;
  }
  return found;
}

// Where two lines cross between two points: the first is ahead at `a`, the second at `b`.
double crossing(const MixAtShare& a, const MixAtShare& b, std::size_t from, std::size_t to) {
  const double before = std::max(0.0, rate(a, from) - rate(a, to)), after = rate(b, to) - rate(b, from);
  return before + after > 0 ? a.share + (b.share - a.share) * before / (before + after) : b.share;
}

// The fixed placement that loses least where it loses most.
std::size_t safest(const MixReport& report, const MixSweep& sweep) {
  std::size_t safest = kNoPlacement;
  for (std::size_t i = 0; i < report.placements.size(); ++i)
    if (report.placements[i].fixed &&
        (safest == kNoPlacement || worst_loss(report, sweep, i).loss < worst_loss(report, sweep, safest).loss))
      safest = i;
  return safest;
}

std::string no_flip(const MixReport& report, const MixSweep& sweep, std::size_t only) {
  double most = 0;
  std::size_t worst = only;
  for (std::size_t i = 0; i < report.placements.size(); ++i) {
    if (!report.placements[i].fixed) continue;
    const double loss = worst_loss(report, sweep, i).loss;
    if (loss > most) most = loss, worst = i;
  }
  return fmt::format(
      "Nothing flips over the share of {}, so placement should not change with it: {} is the fastest of the fixed ones "
      "from {} to {}, or within {} of it; {} loses up to {}.",
      sweep.modality, report.placements[only].words, at(sweep.points.front().share), at(sweep.points.back().share),
      percent(kWorthIt), report.placements[worst].words, percent(most));
}

}  // namespace

std::optional<std::size_t> best_fixed(const MixReport& report, const MixAtShare& point) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < report.placements.size(); ++i)
    if (report.placements[i].fixed && point.runs[i] && (!best || rate(point, i) > rate(point, *best))) best = i;
  return best;
}

std::vector<std::size_t> to_have(const MixReport& report, const MixSweep& sweep) {
  std::vector<std::size_t> chosen;
  std::size_t now = kNoPlacement;
  for (std::size_t at = 0; at < sweep.points.size(); ++at) {
    if (!best_fixed(report, sweep.points[at]))
      now = kNoPlacement;
    else if (now == kNoPlacement || !is_worth_having(report, sweep.points[at], now))
      now = longest_best(report, sweep, at);
    chosen.push_back(now);
  }
  return chosen;
}

std::vector<MixFlip> flips(const MixReport& report, const MixSweep& sweep) {
  const std::vector<std::size_t> chosen = to_have(report, sweep);
  std::vector<MixFlip> found;
  for (std::size_t i = 1; i < chosen.size(); ++i)
    if (chosen[i] != chosen[i - 1] && chosen[i] != kNoPlacement && chosen[i - 1] != kNoPlacement)
      found.push_back(
          {crossing(sweep.points[i - 1], sweep.points[i], chosen[i - 1], chosen[i]), chosen[i - 1], chosen[i]});
  return found;
}

MixLoss worst_loss(const MixReport&, const MixSweep& sweep, std::size_t placement) {
  MixLoss worst{-1, 0};
  for (const MixAtShare& point : sweep.points) {
    const double best = best_rate(point);
    const double loss = best > 0 ? 1 - rate(point, placement) / best : 0;
    if (loss > worst.loss) worst = {loss, point.share};
  }
  return worst;
}

std::string answer(const MixReport& report, const MixSweep& sweep) {
  const std::vector<std::size_t> chosen = to_have(report, sweep);
  const auto first = std::find_if(chosen.begin(), chosen.end(), [](std::size_t p) { return p != kNoPlacement; });
  if (first == chosen.end()) return "No placement fits at any share of " + sweep.modality + ".";
  const std::vector<MixFlip> found = flips(report, sweep);
  if (found.empty()) return no_flip(report, sweep, *first);
  std::string text =
      fmt::format("Over the share of {} the best placement is {}", sweep.modality, report.placements[*first].words);
  for (const MixFlip& flip : found)
    text += fmt::format("; from {} on {}", at(flip.share), report.placements[flip.to].words);
  const std::size_t safe = safest(report, sweep);
  const MixLoss loss = worst_loss(report, sweep, safe);
  return text + fmt::format(". Of those that never change, {} loses least: {} at most, at {}.",
                            report.placements[safe].words, percent(loss.loss), at(loss.share));
}

std::string steps_words(const MixReport& report) {
  return fmt::format("steps {} to {}", report.first_timed + 1, report.end_timed);
}

std::string adaptive_sentence(const MixReport& report, const MixSweep& sweep) {
  for (std::size_t i = 0; i < report.placements.size(); ++i) {
    if (report.placements[i].name != "adaptive") continue;
    const MixLoss loss = worst_loss(report, sweep, i);
    if (loss.loss < 0.001) return "Policy adaptive is as fast as the best of them at every share.";
    return fmt::format("Policy adaptive loses {} against the best of them where it loses most, at {}.",
                       percent(loss.loss), at(loss.share));
  }
  return "";
}

}  // namespace tandem
