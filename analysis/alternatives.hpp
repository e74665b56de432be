// What would shorten a step, from simulations with one thing changed each: more of a resource, or another policy. Must
// not know how simulations are made, or how they are told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/run/more_of.hpp"

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

struct Alternatives {
  double now_s = 0;   // the median step of the simulation that they stand beside
  double factor = 1;  // of each resource
  std::vector<WorthOfMore> resources = {};
  std::vector<OtherPolicy> policies = {};  // without the run's own

  // The share of the step that one of them saves; none: it does not run.
  std::optional<double> saved_share(const Alternative& with) const;
};

// What is less than this share of the step, more of a resource does not save.
inline constexpr double kLeastSaved = 0.005;

// Of which more would save most; null: none saves kLeastSaved. Of two that are about as good, one of which has the
// other as a part, the part.
const WorthOfMore* worth_most(const Alternatives& alternatives);
// The fastest policy that trains the same and is faster than the run's own; null: there is none.
const OtherPolicy* better_policy(const Alternatives& alternatives);

// By the length of their steps; what does not run comes last.
std::vector<WorthOfMore> fastest_first(std::vector<WorthOfMore> resources);
std::vector<OtherPolicy> fastest_first(std::vector<OtherPolicy> policies);

}  // namespace tandem
