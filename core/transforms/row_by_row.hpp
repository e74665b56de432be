// The order of what generates in which a batch goes through all layers before the next one does. Must not know steps.
#pragma once

#include <memory>
#include <string_view>

#include "core/graph/rewrite.hpp"

namespace tandem {

inline constexpr std::string_view kRowByRow = "row_by_row";
std::shared_ptr<const Rewrite> row_by_row();

}  // namespace tandem
