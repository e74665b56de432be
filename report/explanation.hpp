// Why a run's steps take as long as they do, and what would shorten them: a sentence, the critical path, the roofline,
// what more of each resource and what other policies bring. Works on result JSON. Must not know how runs are made.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/run/more_of.hpp"
#include "report/origin.hpp"

namespace tandem {

// A simulated run of the same scenario with something changed.
struct Alternative {
  std::optional<double> step_s = {};  // its median step; none: it does not run
  std::string why_not = {};
};

struct WorthOfMore {
  MoreOf more;
  Alternative with;
};

struct OtherPolicy {
  std::string policy;
  bool approximate = false;  // training under it gives other losses
  Alternative with;
};

struct Explanation {
  bool gpu = false;            // what the device is
  std::string optimizer;       // whose update it is that the CPU does
  double h2d_bytes_per_s = 0;  // of the machine, under the scenario's limits
  nlohmann::ordered_json run;  // the result that is explained
  double factor = 1;           // of each resource
  // Of the simulation beside which the alternatives stand, and --set arguments of that and of them all.
  nlohmann::ordered_json simulated = {};
  std::vector<std::string> settings = {};
  std::vector<WorthOfMore> resources = {};
  std::vector<OtherPolicy> policies = {};  // without the run's own
  Origin origin = {};
};

// The share of the simulated step that an alternative saves; none: it does not run.
std::optional<double> saved_share(const Explanation& explanation, const Alternative& alternative);
// Of which more would save most; null: none saves half a per cent. Of two that are about as good, one of which has the
// other as a part, the part.
const WorthOfMore* worth_most(const Explanation& explanation);
// The fastest policy that trains the same and is faster than the run's own; null: there is none.
const OtherPolicy* better_policy(const Explanation& explanation);

std::string sentence(const Explanation& explanation);
// For a terminal of so many columns.
std::string explanation_text(const Explanation& explanation, std::size_t columns);
nlohmann::ordered_json explanation_json(const Explanation& explanation);

}  // namespace tandem
