// One self-contained HTML page of one run, or of several one above the other on the same time axis. No network is
// needed to open it, and no text of the user's can become markup. Must not know files or terminals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/analysis.hpp"
#include "report/comparison.hpp"

namespace tandem {

std::string html_report(const std::vector<const Analysis*>& runs, const std::vector<ComparedFigure>& table = {});

struct PagePiece {
  std::string_view mark;
  std::string text;
};
// Replaces each {{mark}} of a page once, left to right: what has been put in is not searched again.
std::string fill_page(std::string_view page, const std::vector<PagePiece>& pieces);

// For text and for attributes.
std::string escape_html(std::string_view text);
// JSON that may stand inside a script element: no '<' is left.
std::string escape_json_for_html(const std::string& json);

}  // namespace tandem
