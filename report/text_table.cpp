#include "report/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/summary.hpp"

namespace tandem {

std::string aligned(std::vector<TextRow> rows, std::size_t names) {
  std::vector<std::size_t> widths;
  for (TextRow& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = terminal_text(row[i]);
      widths.resize(std::max(widths.size(), row.size()));
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const TextRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += (i > 0 ? "  " : "") +
              (i < names ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("{:>{}}", row[i], widths[i]));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace tandem
