// Where ranks divide layers, or experts: what bodies are told of which part of each this rank has. Must not know what
// they divide.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/step/context.hpp"

namespace tandem {

// Work::sizes: elements, and of several ranks their number and this one's place. Where ranks that divide experts divide
// states, too, what is no expert's is in parts that each has for itself.
inline std::vector<std::int64_t> sizes_of_part(const StepContext& context, const StageSpec& stage,
                                               std::int64_t elements) {
  const StepOptions& options = context.options;
  if (options.tensor_group.size == 1 && stage.gradients != GradientRanks::Expert && context.share.parts > 1)
    return {elements};
  const auto place_in = [&](const RankGroup& group) {
    return std::ranges::find(group.members, options.own) - group.members.begin();
  };
  const RankGroup &columns = options.tensor_group, &experts = options.expert_group;
  if (columns.size > 1 && experts.size > 1 && stage.gradients == GradientRanks::Expert)  // each in columns as well
    return {elements, columns.size * experts.size, place_in(experts) * columns.size + place_in(columns)};
  const RankGroup& among = columns.size > 1 ? columns : experts;
  if (among.size == 1) return {elements};
  return {elements, among.size, place_in(among)};
}

}  // namespace tandem
