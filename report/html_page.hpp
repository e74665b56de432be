// What all HTML pages share: the frame with its style, sections and tables. No network is needed to open a page, and no
// text of the user's can become markup. Must not know what the pages show.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct PagePiece {
  std::string_view mark;
  std::string text;
};
// Replaces each {{mark}} of a page, left to right: what has been put in is not searched again.
std::string fill_page(std::string_view page, const std::vector<PagePiece>& pieces);

// For text and for attributes.
std::string escape_html(std::string_view text);
// The same of text from outside, which might also drive a terminal.
std::string plain_html(std::string_view text);

// A page of its own.
struct HtmlPage {
  std::string title, subtitle;  // text
  std::string headline;         // text: the page's answer in a sentence
  std::string hint = {};        // text: where more of an answer is
  std::string body;             // markup: sections
  std::string origin = {};      // markup: the last section, of what the page was made of
  std::string script = {};      // markup: script elements; "": the page may run none
};
std::string html_page(const HtmlPage& page);
// `content` and `cells` are markup; cells after the first hold numbers.
std::string html_section(std::string_view title, std::string_view note, std::string_view content);
std::string html_row(const std::vector<std::string>& cells, std::string_view tag = "td",
                     std::string_view attribute = "");

}  // namespace tandem
