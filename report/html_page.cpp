#include "report/html_page.hpp"

#include <fmt/format.h>

#include "report/summary.hpp"
#include "report_html_pieces.hpp"

namespace tandem {

std::string fill_page(std::string_view page, const std::vector<PagePiece>& pieces) {
  std::string text;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t open = page.find("{{", at);
    text += page.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const std::size_t close = page.find("}}", open);
    const std::string_view mark = page.substr(open + 2, close - open - 2);
    for (const PagePiece& piece : pieces)
      if (piece.mark == mark) text += piece.text;
    at = close + 2;
  }
  return text;
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string plain_html(std::string_view text) { return escape_html(terminal_text(std::string(text))); }

std::string html_page(const HtmlPage& page) {
  return fill_page(html::k_page_html, {{"scripts", page.script.empty() ? "" : "script-src 'unsafe-inline'"},
                                       {"title", plain_html(page.title)},
                                       {"subtitle", plain_html(page.subtitle)},
                                       {"headline", plain_html(page.headline)},
                                       {"hint", plain_html(page.hint)},
                                       {"style", html::k_style_css},
                                       {"body", page.body},
                                       {"origin", page.origin},
                                       {"script", page.script}});
}

std::string html_section(std::string_view title, std::string_view note, std::string_view content) {
  return fmt::format("<section>\n<h2>{}</h2>\n<p class=\"note\">{}</p>\n{}</section>\n", title, note, content);
}

std::string html_row(const std::vector<std::string>& cells, std::string_view tag, std::string_view attribute) {
  std::string row = fmt::format("<tr{}>", attribute);
  for (std::size_t i = 0; i < cells.size(); ++i)
    row += fmt::format("<{0}{1}>{2}</{0}>", tag, i > 0 ? " class=\"number\"" : "", cells[i]);
  return row + "</tr>\n";
}

}  // namespace tandem
