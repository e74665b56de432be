#include "core/model/families/common/checks.hpp"

#include "core/base/errors.hpp"

namespace tandem {

void require_option(bool holds, std::string_view key, const std::string& problem, std::string_view allowed) {
  if (holds) return;
  throw ConfigError("workload." + std::string(key) + ": " + problem + "; " + std::string(allowed));
}

void require_size(std::string_view key, std::int64_t value, std::int64_t most) {
  const std::string range = "allowed: 1 to " + std::to_string(most);
  require_option(value != 0, key, "missing", range);
  require_option(value >= 1 && value <= most, key, std::to_string(value) + " is out of range", range);
}

void require_divisor(std::string_view key, std::int64_t value, std::string_view of, std::int64_t multiple) {
  const std::string name(of);
  require_option(value >= 1 && multiple % value == 0, key,
                 std::to_string(value) + " does not divide " + name + " (" + std::to_string(multiple) + ")",
                 "allowed: a divisor of " + name);
}

void require_product(std::string_view keys, std::initializer_list<std::int64_t> factors) {
  // 2^48 elements are a quarter of a petabyte in one tensor; times hidden sizes and layers this still fits in 63 bits.
  constexpr double kMostElements = 281474976710656.0;
  double product = 1;
  for (std::int64_t factor : factors) product *= static_cast<double>(factor);
  require_option(product <= kMostElements, keys, "one tensor would have more than 2^48 elements", "use smaller sizes");
}

}  // namespace tandem
