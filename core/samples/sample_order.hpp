// The order in which the samples of a data set come: each once in an epoch, in an order of the epoch's own. A pure
// function of the seed, so that whoever asks, in whatever order, is told the same. Must not know what samples are.
#pragma once

#include <cstdint>

namespace tandem {

// Of [0, 1), for the `index`th draw at a place in the order.
double draw_of(std::uint64_t seed, std::int64_t place, std::int64_t index);

// What is drawn for one use of a sample's item goes by this number: of the seed, of the sample, of how many times it
// was used before, and of which of its items it is.
std::uint64_t seed_of_use(std::uint64_t seed, std::int64_t sample, std::int64_t use, std::int64_t item);

// The sample, of `samples`, that is at this place of an endless order.
std::int64_t sample_at(std::uint64_t seed, std::int64_t samples, std::int64_t place);

}  // namespace tandem
