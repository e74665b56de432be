// Text as one cell of a CSV table.
#pragma once

#include <string>

namespace tandem {

inline std::string csv_cell(const std::string& text) {
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + '"';
}

}  // namespace tandem
