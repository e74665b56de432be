// Lanes by their names, as files and logs write them.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/ids.hpp"

namespace tandem {

inline std::optional<Engine> find_engine(std::string_view name) {
  for (int i = 0; i < kEngineCount; ++i)
    if (name_of(static_cast<Engine>(i)) == name) return static_cast<Engine>(i);
  return std::nullopt;
}

}  // namespace tandem
