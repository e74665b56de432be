// Where training steps end, how long they take, and what they compute: step times, losses, flops, tokens.
// Must not know formats or worlds.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analysis/step_figures.hpp"
#include "analysis/timeline.hpp"

namespace tandem {

struct Window {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

struct Steps {
  std::vector<std::int64_t> ends_ns;  // of each completed step's last command on the compute lanes
  // Differences of successive ends; a step that follows an evaluation begins when that ends.
  std::vector<std::int64_t> times_ns;
  std::int64_t head_ns = 0;  // from the start of the run to the end of the first step
  std::int64_t tail_ns = 0;  // from the end of the last step to the end of the run
  // From the first step's end to the last's without the evaluations between, in order: `times_ns.size()` steps. A run
  // of one step: from 0 to its end.
  std::vector<Window> windows;
  std::int64_t windows_ns() const;
  // Whether what ended then belongs to them.
  bool counts(std::int64_t ended_ns) const;
  std::int64_t window_steps() const { return times_ns.empty() ? 1 : static_cast<std::int64_t>(times_ns.size()); }
};

Steps find_steps(const Timeline& timeline);

// Time that ops of phase Save took, over all ranks and steps.
std::int64_t save_ns(const Timeline& timeline);
// By step: means over micro-batches and ranks of losses, gradient norms.
std::map<std::int32_t, StepFigures> step_figures(const Timeline& timeline);
// Floating-point operations of the forward and backward ops (recompute does not count) of all ranks, per step.
double model_flops_per_step(const Timeline& timeline);

struct Spread {
  double median = 0, p10 = 0, p90 = 0;
};
// Quantiles by linear interpolation; of an empty list, `fallback` thrice.
Spread spread_of(std::vector<double> values, double fallback);

}  // namespace tandem
