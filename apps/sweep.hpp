// The arguments by which `tandem compare-policies` varies a key of its scenario. Knows no scenario.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

// "KEY=VALUE,VALUE,...": commas inside brackets part no values. All throw ConfigError, which names `flag`.
struct SweptKey {
  std::string key;
  std::vector<std::string> values;
};
SweptKey read_key_values(const std::string& flag, const std::string& argument);

// "KEY=LOW..HIGH", 0 <= LOW <= HIGH.
struct KeyRange {
  std::string key;
  std::int64_t low = 0, high = 0;
};
KeyRange read_key_range(const std::string& flag, const std::string& argument);

// "NAME,NAME,...", each one of `allowed` and named once.
std::vector<std::string> read_names(const std::string& flag, const std::string& argument,
                                    const std::vector<std::string>& allowed);

}  // namespace tandem
