#include "analysis/alternatives.hpp"

#include <algorithm>
#include <limits>

namespace tandem {
namespace {

// A policy that is faster by less may be so by chance.
constexpr double kLeastBetter = 0.01;
// A part of a resource is named instead of it where it saves nearly as much.
constexpr double kNearlyAll = 0.8;

template <typename T>
std::vector<T> by_step(std::vector<T> all) {
  const auto step = [](const T& one) { return one.with.step_s.value_or(std::numeric_limits<double>::max()); };
  std::stable_sort(all.begin(), all.end(), [&](const T& a, const T& b) { return step(a) < step(b); });
  return all;
}

}  // namespace

std::optional<double> Alternatives::saved_share(const Alternative& with) const {
  if (!with.step_s || now_s <= 0) return std::nullopt;
  return 1 - *with.step_s / now_s;
}

const WorthOfMore* worth_most(const Alternatives& alternatives) {
  const WorthOfMore* best = nullptr;
  double most = kLeastSaved;
  for (const WorthOfMore& worth : alternatives.resources)
    if (const auto saved = alternatives.saved_share(worth.with); saved && *saved >= most) {
      best = &worth;
      most = *saved;
    }
  if (best == nullptr) return nullptr;
  const WorthOfMore* part = nullptr;
  double of_part = kNearlyAll * most;
  for (const WorthOfMore& worth : alternatives.resources)
    if (const auto saved = alternatives.saved_share(worth.with);
        worth.more.part_of == best->more.resource && saved && *saved >= of_part) {
      part = &worth;
      of_part = *saved;
    }
  return part != nullptr ? part : best;
}

const OtherPolicy* better_policy(const Alternatives& alternatives) {
  const OtherPolicy* best = nullptr;
  double least_s = alternatives.now_s * (1 - kLeastBetter);
  for (const OtherPolicy& other : alternatives.policies)
    if (!other.approximate && other.with.step_s && *other.with.step_s <= least_s) {
      best = &other;
      least_s = *other.with.step_s;
    }
  return best;
}

std::vector<WorthOfMore> fastest_first(std::vector<WorthOfMore> resources) { return by_step(std::move(resources)); }
std::vector<OtherPolicy> fastest_first(std::vector<OtherPolicy> policies) { return by_step(std::move(policies)); }

}  // namespace tandem
