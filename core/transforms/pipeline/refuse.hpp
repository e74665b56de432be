// How a pipeline says that it is not built for what a scenario asks.
#pragma once

#include <string>
#include <string_view>

#include "core/base/errors.hpp"

namespace tandem {

// Throws ConfigError unless `holds`.
inline void require_pipeline(bool holds, std::string_view key, const std::string& problem, std::string_view allowed) {
  if (!holds) throw ConfigError(std::string(key) + ": " + problem + "; allowed: " + std::string(allowed));
}

}  // namespace tandem
