// Rows of cells as columns on a terminal. Must not know what they mean.
#pragma once

#include <string>
#include <vector>

namespace tandem {

using TextRow = std::vector<std::string>;

// The first `names` columns to the left, numbers to the right. Cells may be missing at the end of a row.
std::string aligned(std::vector<TextRow> rows, std::size_t names = 1);

}  // namespace tandem
