#include "core/scenario/watchdog.hpp"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {

std::int64_t watchdog_ns(const Scenario& scenario) {
  constexpr std::int64_t kDefaultNs = 60'000'000'000;  // as the schema says
  constexpr std::pair<std::string_view, double> kUnits[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
  if (scenario.text.empty()) return kDefaultNs;
  const Node root = read_yaml(scenario.text, "scenario");
  const Node* key = root.find("watchdog");
  if (key == nullptr) return kDefaultNs;
  std::size_t length = 0;
  const double number = std::stod(key->text, &length);
  for (const auto& [unit, ns] : kUnits)
    if (std::string_view(key->text).substr(length) == unit) return std::llround(number * ns);
  CHECK(false, "the schema lets no other unit pass:", key->text);
  return kDefaultNs;
}

}  // namespace tandem
