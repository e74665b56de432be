// The result of a run as JSON: the same keys for a simulated and a measured run. Schema: docs/result.schema.json.
// Must not know files or terminals.
#pragma once

#include <nlohmann/json.hpp>

#include "analysis/analysis.hpp"

namespace tandem {

inline constexpr int kResultSchema = 1;
nlohmann::ordered_json to_json(const Analysis& analysis);

}  // namespace tandem
