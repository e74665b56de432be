#include "runtime/media/svg_references.hpp"

#include <string_view>

namespace tandem {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

bool is_inside(std::string_view reference) {
  const std::size_t begin = reference.find_first_not_of(kSpace);
  return begin == std::string_view::npos || reference.substr(begin).starts_with("#") ||
         reference.substr(begin).starts_with("data:");
}

// "xlink:href" of " href"; the name of an attribute ends at its "=".
std::string external_href(std::string_view tag) {
  for (std::size_t at = tag.find("href"); at != std::string_view::npos; at = tag.find("href", at + 1)) {
    if (at == 0 || (kSpace.find(tag[at - 1]) == std::string_view::npos && tag[at - 1] != ':')) continue;
    std::size_t equals = tag.find_first_not_of(kSpace, at + 4);
    if (equals == std::string_view::npos || tag[equals] != '=') continue;
    const std::size_t quote = tag.find_first_not_of(kSpace, equals + 1);
    if (quote == std::string_view::npos || (tag[quote] != '"' && tag[quote] != '\'')) continue;
    const std::string_view value = tag.substr(quote + 1, tag.find(tag[quote], quote + 1) - quote - 1);
    if (!is_inside(value)) return std::string(value);
  }
  return "";
}

// Paints, masks and style sheets.
std::string external_url(std::string_view text) {
  for (std::size_t at = text.find("url("); at != std::string_view::npos; at = text.find("url(", at + 4)) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n\"'&", at + 4);
    if (begin == std::string_view::npos) break;
    std::string_view value = text.substr(begin, text.find(')', begin) - begin);
    if (value.starts_with("quot;")) value.remove_prefix(5);
    if (!is_inside(value)) return std::string(value);
  }
  return text.find("@import") == std::string_view::npos ? "" : "@import";
}

bool is_link(std::string_view tag) {
  const std::string_view name = tag.substr(0, tag.find_first_of(" \t\r\n/>"));
  return name == "a" || name.ends_with(":a");
}

}  // namespace

std::string external_reference(const std::string& svg) {
  const std::string_view text = svg;
  for (std::size_t at = text.find('<'); at != std::string_view::npos;) {
    if (text.substr(at).starts_with("<!--")) {
      at = text.find("-->", at);
      if (at == std::string_view::npos) break;
    }
    const std::size_t next = text.find('<', at + 1);
    const std::string_view part = text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1);
    if (part.starts_with("!ENTITY") &&
        (part.find("SYSTEM") != std::string_view::npos || part.find("PUBLIC") != std::string_view::npos))
      return "<" + std::string(part.substr(0, part.find('>')));
    if (part.starts_with("?xml-stylesheet")) return "<?xml-stylesheet";
    if (!is_link(part))
      if (std::string found = external_href(part); !found.empty()) return found;
    if (std::string found = external_url(part); !found.empty()) return found;
    at = next;
  }
  return "";
}

}  // namespace tandem
