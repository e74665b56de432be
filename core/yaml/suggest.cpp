// Suggestions for misspelt words: edit distance with transpositions.
#include "core/yaml/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr std::size_t kLongestWord = 64;  // longer words are no slips; also bounds the work

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost 1 each, letters that
// differ only in case nothing.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  CHECK(last[b.size()] <= std::max(a.size(), b.size()), a, b, last[b.size()]);
  return last[b.size()];
}

// A slip changes at most a third of a word: two letters of h2d for d2h would suggest anything.
std::size_t most_slips(std::string_view word) { return std::max<std::size_t>(1, word.size() / 3); }

}  // namespace

std::string suggest(std::string_view word, const std::vector<std::string>& allowed) {
  if (word.empty() || word.size() > kLongestWord) return "";
  std::string best;
  std::size_t best_distance = most_slips(word) + 1;
  for (const std::string& candidate : allowed) {
    if (candidate.size() > word.size() + best_distance || word.size() > candidate.size() + best_distance) continue;
    const std::size_t distance = edit_distance(word, candidate);
    // Of equally near words, one of the same length is likelier: a wrong letter is the commonest slip.
    const bool nearer = distance < best_distance || (distance == best_distance && !best.empty() &&
                                                     best.size() != word.size() && candidate.size() == word.size());
    if (nearer && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace tandem
