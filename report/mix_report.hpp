// What `tandem analyze --mix` tells: the throughput of a few placements over the share of samples that have a
// modality, and where the best one changes. As text, JSON and a page. Must not know how runs are made.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/holder.hpp"
#include "report/origin.hpp"

namespace tandem {

// One of the placements that are compared.
struct MixPlacement {
  std::string name;     // "workers+1"
  std::string heading;  // "w+1"
  std::string words;    // "transforms on workers, 1 micro-batch on the CPU"
  bool fixed = true;    // one that is named: no search, no choice by step
  std::string policy;   // as a scenario has it
};

// What simulations tell.
struct MixRun {
  double samples_per_s = 0;
  Holder holder;
};

struct MixAtShare {
  double share = 0;
  std::vector<std::optional<MixRun>> runs;  // by placement; none: it does not fit
  std::vector<std::string> why_not;         // by placement; "" where there is a run
};

// From one share to the next another fixed placement is best.
struct MixFlip {
  double share = 0;  // where the lines of the two cross, by the points beside it
  std::size_t from = 0, to = 0;
};

// Over the share of one modality.
struct MixSweep {
  std::string modality;
  std::string others;  // "audio 0.1": what the other modalities' shares are
  std::vector<MixAtShare> points;
};

struct MixReport {
  std::string scenario, machine, family;
  std::int32_t first_timed = 0, end_timed = 0;  // rates are those of these steps, from 0 and without the last
  std::vector<MixPlacement> placements;
  std::vector<MixSweep> sweeps;
  Origin origin = {};
};

// The best fixed placement at a point, the first of equals; none: no one fits.
std::optional<std::size_t> best_fixed(const MixReport& report, const MixAtShare& point);
// The one to have at each point: of fixed ones, that of the point before, unless another is faster by more than
// kWorthIt; then, and at the first point, the one that can be kept longest. kNoPlacement where none fits.
inline constexpr std::size_t kNoPlacement = static_cast<std::size_t>(-1);
std::vector<std::size_t> to_have(const MixReport& report, const MixSweep& sweep);
std::vector<MixFlip> flips(const MixReport& report, const MixSweep& sweep);
// What the placement at each point loses against the best of all at that point, at most: a share, and where.
struct MixLoss {
  double loss = 0, share = 0;
};
MixLoss worst_loss(const MixReport& report, const MixSweep& sweep, std::size_t placement);

// One or two sentences: where placement flips and what following it brings, or that it should not change.
std::string answer(const MixReport& report, const MixSweep& sweep);
// How adaptive does against the best at each share.
std::string adaptive_sentence(const MixReport& report, const MixSweep& sweep);

// "steps 9 to 30".
std::string steps_words(const MixReport& report);

std::string mix_text(const MixReport& report, std::size_t columns);
nlohmann::ordered_json mix_json(const MixReport& report);
std::string mix_html(const MixReport& report);

}  // namespace tandem
