// What the HTML report's script draws, as JSON: slices by lane, memory by tier and role, results. Compact: numbers in
// flat arrays. Must not know markup.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "analysis/analysis.hpp"
#include "report/comparison.hpp"

namespace tandem {

nlohmann::ordered_json html_data(const std::vector<const Analysis*>& runs, const std::vector<ComparedFigure>& table);

}  // namespace tandem
