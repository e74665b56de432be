#include "core/base/json_shape.hpp"

#include <algorithm>
#include <vector>

namespace tandem {
namespace {

std::string excess(std::size_t at, const std::string& problem) {
  return "byte " + std::to_string(at + 1) + ": " + problem + "; allowed: fewer";
}

}  // namespace

std::string json_excess(std::string_view text, const JsonLimits& limits) {
  struct Open {
    bool object;
    std::size_t commas;
  };
  std::vector<Open> open;
  std::size_t values = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"':
        for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
        break;
      case '{':
      case '[':
        if (open.size() >= limits.depth)
          return excess(at, "nested deeper than " + std::to_string(limits.depth) + " levels");
        open.push_back({text[at] == '{', 0});
        break;
      case '}':
      case ']':
        if (!open.empty()) open.pop_back();
        break;
      case ',':
        if (++values >= limits.values) return excess(at, "more than " + std::to_string(limits.values) + " values");
        if (!open.empty() && open.back().object && ++open.back().commas >= limits.members)
          return excess(at, "an object of more than " + std::to_string(limits.members) + " keys");
        break;
      default:
        break;
    }
  }
  return "";
}

bool is_plain_name(std::string_view name) {
  constexpr std::size_t kLongest = 200;  // an extension is added, and file systems take 255
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  };
  return !name.empty() && name.size() <= kLongest && name.front() != '.' && name.find('/') == std::string_view::npos &&
         std::none_of(name.begin(), name.end(), is_control);
}

}  // namespace tandem
