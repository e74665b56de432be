#include "report/reasons.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

namespace tandem {
namespace {

constexpr std::string_view kNoRoom = "does not fit: ";

std::string replaced(std::string text, const std::string& word, std::string_view by) {
  for (std::size_t at = text.find(word); !word.empty() && at != std::string::npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
  return text;
}

// The same for reasons that are one: without numbers, and without what of a full memory needs the room.
std::string kind_of(const Reason& reason) {
  std::string text = replaced(reason.why, reason.own, "it");
  if (text.starts_with(kNoRoom)) text = text.substr(0, text.find(": ", kNoRoom.size()));
  text = text.substr(0, text.find("; "));
  std::erase_if(text, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  return text;
}

}  // namespace

std::vector<MergedReason> merged(const std::vector<Reason>& reasons) {
  std::map<std::string, std::size_t> places;
  std::vector<MergedReason> all;
  std::vector<std::string> own;  // of the first of each
  for (const Reason& reason : reasons) {
    const auto [place, is_new] = places.emplace(kind_of(reason), all.size());
    if (is_new) {
      all.push_back({{}, reason.why.substr(0, reason.why.find("; "))});
      own.push_back(reason.own);
    }
    MergedReason& one = all[place->second];
    if (one.names.size() == 1) one.why = replaced(one.why, own[place->second], "it");
    one.names.push_back(reason.name);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const MergedReason& a, const MergedReason& b) { return a.names.size() > b.names.size(); });
  return all;
}

}  // namespace tandem
