// Checks of workload options, with messages in the form of all input errors. Must not know families or graphs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "core/scenario/scenario.hpp"

namespace tandem {

// Throws ConfigError "workload.<key>: <problem>; <allowed>" unless `holds`.
void require_option(bool holds, std::string_view key, const std::string& problem, std::string_view allowed);
// A size that the family needs: at least 1 and at most `most`.
void require_size(std::string_view key, std::int64_t value, std::int64_t most);
// The product of the factors must stay far from overflow once it is multiplied by element sizes and flops.
void require_product(std::string_view keys, std::initializer_list<std::int64_t> factors);
// Options that every training family shares: batch, micro_batches, devices, recompute, and the optimizer's.
void require_training_options(const Scenario& scenario);

// For families that have no loss.
void require_no_validation(const Scenario& scenario);

// Threads that a body may use: what LibTorch's temporaries that are kept one a thread are sized for.
std::int64_t body_threads(const Scenario& scenario);

// Largest sizes that a family accepts; far beyond any machine, and small enough for 64-bit products.
inline constexpr std::int64_t kMostLayers = 10'000;
inline constexpr std::int64_t kMostSize = 1 << 24;
inline constexpr std::int64_t kMostVocabulary = 1 << 24;

}  // namespace tandem
