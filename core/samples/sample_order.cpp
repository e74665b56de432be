#include "core/samples/sample_order.hpp"

#include <bit>

#include "core/base/check.hpp"
#include "core/base/mix.hpp"

namespace tandem {
namespace {

// A permutation of [0, 2^bits) with an even number of bits: a Feistel network (Luby and Rackoff 1988), whose rounds
// swap halves; it needs no table, so that an epoch of any length costs nothing.
std::uint64_t permuted(std::uint64_t x, int bits, std::uint64_t key) {
  constexpr int kRounds = 4;
  const int half = bits / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  std::uint64_t left = x >> half, right = x & mask;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t next = left ^ (mix(key ^ mix(right + (static_cast<std::uint64_t>(round) << 48))) & mask);
    left = right;
    right = next;
  }
  return (left << half) | right;
}

}  // namespace

double draw_of(std::uint64_t seed, std::int64_t place, std::int64_t index) {
  const std::uint64_t x = mix(mix(mix(seed) ^ static_cast<std::uint64_t>(place)) ^ static_cast<std::uint64_t>(index));
  return static_cast<double>(x >> 11) * 0x1p-53;
}

std::uint64_t seed_of_use(std::uint64_t seed, std::int64_t sample, std::int64_t use, std::int64_t item) {
  std::uint64_t x = mix(seed);
  for (const std::int64_t part : {sample, use, item}) x = mix(x ^ static_cast<std::uint64_t>(part));
  return x;
}

std::int64_t sample_at(std::uint64_t seed, std::int64_t samples, std::int64_t place) {
  CHECK(samples >= 1 && place >= 0, samples, place);
  const std::int64_t epoch = place / samples;
  auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(samples - 1)));
  bits = bits < 2 ? 2 : bits + bits % 2;
  const std::uint64_t key = mix(seed ^ mix(static_cast<std::uint64_t>(epoch)));
  // What falls outside goes on until it is inside: still a permutation of what is inside.
  auto x = static_cast<std::uint64_t>(place % samples);
  do x = permuted(x, bits, key);
  while (x >= static_cast<std::uint64_t>(samples));
  return static_cast<std::int64_t>(x);
}

}  // namespace tandem
