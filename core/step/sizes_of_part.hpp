// Where ranks divide layers: what bodies are told of which part of each this rank has. Must not know what they divide.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/step/context.hpp"

namespace tandem {

// Work::sizes: elements, and of several ranks their number and this one's place.
inline std::vector<std::int64_t> sizes_of_part(const StepOptions& options, std::int64_t elements) {
  if (options.tensor_group.size == 1) return {elements};
  const Rank own = options.data_group.members.at(static_cast<std::size_t>(options.rank));
  const std::vector<Rank>& members = options.tensor_group.members;
  return {elements, options.tensor_group.size, std::find(members.begin(), members.end(), own) - members.begin()};
}

}  // namespace tandem
