// Checks of a family's keys, with messages in the form of all input errors. Must not know a family.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tandem {

// Throws ConfigError "workload.<key>: <problem>; <allowed>" unless `holds`. Several keys: "heads, hidden".
void require_option(bool holds, std::string_view key, const std::string& problem, std::string_view allowed);
// A size that the family needs: at least 1 and at most `most`.
void require_size(std::string_view key, std::int64_t value, std::int64_t most);
// `key` is a divisor of what `of` has.
void require_divisor(std::string_view key, std::int64_t value, std::string_view of, std::int64_t multiple);
// The product of the factors must stay far from overflow once it is multiplied by element sizes and flops.
void require_product(std::string_view keys, std::initializer_list<std::int64_t> factors);

// Largest sizes that a family accepts; far beyond any machine, and small enough for 64-bit products.
inline constexpr std::int64_t kMostLayers = 10'000;
inline constexpr std::int64_t kMostSize = 1 << 24;
inline constexpr std::int64_t kMostVocabulary = 1 << 24;

}  // namespace tandem
