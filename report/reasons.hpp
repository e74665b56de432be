// Why many things did not run, said once for all that it holds for. Must not know what they are.
#pragma once

#include <string>
#include <vector>

namespace tandem {

struct Reason {
  std::string name;  // of what did not run
  std::string own;   // a word of its own that may stand in the reason, where others have theirs
  std::string why;
};

struct MergedReason {
  std::vector<std::string> names;
  std::string why;  // the first one's, up to its first semicolon
};

// Those that differ in numbers, in their own words or in which op needs too much are one; the commonest first.
std::vector<MergedReason> merged(const std::vector<Reason>& reasons);

}  // namespace tandem
