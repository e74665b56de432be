#include "core/step/placement.hpp"

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <charconv>
#include <optional>
#include <string>

#include "core/base/errors.hpp"

namespace tandem {
namespace {

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// "block4..7"; as a word's own digits are part of a module's name, the first number is what follows the last letter.
struct Range {
  std::string_view kind;
  std::int64_t first, last;
};
std::optional<Range> range_of(std::string_view word) {
  const std::size_t dots = word.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::size_t digits = word.substr(0, dots).find_last_not_of("0123456789") + 1;
  const auto first = number_of(word.substr(digits, dots - digits)), last = number_of(word.substr(dots + 2));
  if (!first || !last || *first > *last) return std::nullopt;
  return Range{word.substr(0, digits), *first, *last};
}

bool names(std::string_view word, std::string_view module) {
  if (word.ends_with('*')) return module.starts_with(word.substr(0, word.size() - 1));
  const std::optional<Range> range = range_of(word);
  if (!range) return word == module;
  if (!module.starts_with(range->kind)) return false;
  const auto number = number_of(module.substr(range->kind.size()));
  return number && *number >= range->first && *number <= range->last;
}

[[noreturn]] void refuse(const std::string& word, const Network& network) {
  constexpr std::size_t kMostNames = 8;
  std::string all;
  for (std::size_t i = 0; i < std::min(network.modules.size(), kMostNames); ++i)
    all += (i == 0 ? "" : ", ") + network.modules[i].name;
  if (network.modules.size() > kMostNames) all += ", ... " + network.modules.back().name;
  throw ConfigError("policy." + std::string(kCpuModules) + ": no module of this network is called '" + word +
                    "'; allowed: " + all + "; or block4..7, or block*");
}

}  // namespace

std::vector<bool> modules_on_cpu(const Network& network, const Scenario& scenario) {
  std::vector<bool> on_cpu(network.modules.size(), false);
  const auto option = scenario.policy.options.find(std::string(kCpuModules));
  if (option == scenario.policy.options.end() || option->second.empty()) return on_cpu;
  std::vector<std::string> words;
  boost::split(words, option->second, boost::is_any_of(","));
  for (std::string& word : words) {
    boost::trim(word);
    bool found = false;
    for (std::size_t i = 0; i < on_cpu.size(); ++i)
      if (names(word, network.modules[i].name)) on_cpu[i] = found = true;
    if (!found) refuse(word, network);
  }
  return on_cpu;
}

}  // namespace tandem
