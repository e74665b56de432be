// What a run that adapts decided, and what came of it. Must not know who decides.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct AdaptDecision {
  std::int32_t step = 0;                     // training steps done when the question was asked
  std::string cause;                         // "start", or which lanes have changed: "h2d takes 2.1 times as long"
  std::map<std::string, double> lane_times;  // by lane, over the profile's
  struct Candidate {
    std::string policy;
    double step_s = 0, switch_s = 0;
    std::string why_not;
  };
  std::vector<Candidate> candidates;  // the one in force comes first
  std::string chosen;                 // the policy from then on
  bool switches = false;
  std::int32_t after_step = 0;            // where it decided
  double forecast_step_s = 0;             // of the chosen one
  std::optional<double> measured_step_s;  // of the chosen one, once it has settled after a switch
};

}  // namespace tandem
