#include "core/scenario/scenario.hpp"

#include <algorithm>

namespace tandem {

std::int64_t WorkloadOptions::items_of(const std::string& modality, std::int64_t otherwise) const {
  const auto found = items.find(modality);
  return found == items.end() ? otherwise : found->second;
}

double MixOptions::share(const std::string& modality, std::int64_t step) const {
  const auto of = [&](const MixPoint& point) {
    const auto found = point.shares.find(modality);
    return found == point.shares.end() ? 1.0 : found->second;
  };
  const auto after =
      std::find_if(points.begin(), points.end(), [&](const MixPoint& point) { return point.from_step > step; });
  if (after == points.begin()) return points.empty() ? 1.0 : of(*after);
  const MixPoint& before = *std::prev(after);
  if (!drifts || after == points.end()) return of(before);
  const double way =
      static_cast<double>(step - before.from_step) / static_cast<double>(after->from_step - before.from_step);
  return of(before) + way * (of(*after) - of(before));
}

MixOptions MixOptions::from(std::int32_t step) const {
  MixOptions out = *this;
  out.points.clear();
  if (points.empty()) return out;
  MixPoint& now = out.points.emplace_back();
  for (const MixPoint& point : points) {
    for (const auto& [modality, any] : point.shares) now.shares[modality] = share(modality, step);
    if (point.from_step <= step) continue;
    out.points.push_back(point);
    out.points.back().from_step -= step;
  }
  return out;
}

}  // namespace tandem
