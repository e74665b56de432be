// What data a scenario is trained on, by what its network's batches hold. Must not know where data are.
#pragma once

#include "core/scenario/scenario.hpp"

namespace tandem {

enum class DataKind : std::uint8_t {
  Text,        // tokens, and the next ones
  MaskedText,  // tokens, of which the last is the mask
  Images,      // with their classes, of the data set's own size
  MadeUp,      // numbers that no data set gives: seeded, and the same however they are cut into micro-batches
};
// Images are made up where the scenario names none and the installed ones have another size.
DataKind data_kind(const Scenario& scenario);
// Numbers of an image, where the kind is Images.
std::int64_t pixels_of(const Scenario& scenario);

inline constexpr std::int64_t kInstalledPixels = 64;  // of scikit-learn's digits

}  // namespace tandem
