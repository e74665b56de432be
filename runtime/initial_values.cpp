#include "runtime/initial_values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace tandem {
namespace {

constexpr double kDeviation = 0.02;  // GPT-2

// Loops over elements for the widest vectors that the processor has. No products and sums are fused (CMakeLists.txt):
// all processors make the same numbers.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TANDEM_VECTORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TANDEM_VECTORS
#endif

// SplitMix64's finaliser: a bijection whose outputs for consecutive inputs pass statistical tests.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t hash(std::string_view name) {
  std::uint64_t h = 0;
  for (const char c : name) h = mix(h ^ static_cast<unsigned char>(c));
  return h;
}

// The functions below have no branch and no call, so that loops over them become vector instructions, and are within a
// few units of a double's last place: the float they end in hardly ever differs from the exact one.

// Of an integer below 2^52: it is placed in the mantissa of 2^52. (Older vector units convert no 64-bit integers.)
inline double to_double(std::uint64_t small) { return std::bit_cast<double>(small | 0x4330000000000000u) - 0x1p52; }

// Uniform in (0, 1], 53 bits.
inline double uniform(std::uint64_t bits) {
  const std::uint64_t n = (bits >> 11) + 1;
  return to_double(n >> 32) * 0x1p-21 + to_double(n & 0xffffffffu) * 0x1p-53;
}

// Of x > 0: x = m 2^k with m from sqrt(1/2) to sqrt(2), log m = 2 artanh((m - 1) / (m + 1)).
inline double log_of(double x) {
  constexpr std::uint64_t kRootHalf = std::bit_cast<std::uint64_t>(std::numbers::sqrt2 / 2);
  constexpr std::uint64_t kOne = std::bit_cast<std::uint64_t>(1.0);
  const std::uint64_t shifted = std::bit_cast<std::uint64_t>(x) + (kOne - kRootHalf);
  const double k = to_double(shifted >> 52) - 1023;
  const double m = std::bit_cast<double>((shifted & 0xfffffffffffffu) + kRootHalf);
  const double s = (m - 1) / (m + 1), z = s * s;
  double sum = 0;
  for (int n = 23; n >= 1; n -= 2) sum = sum * z + 1.0 / n;
  return k * std::numbers::ln2 + 2 * s * sum;
}

// cos(2 pi turns), turns in [0, 1]: an eighth of a turn at most around the nearest quarter, by Taylor.
inline double cos_of_turns(double turns) {
  const int quarter = static_cast<int>(4 * turns + 0.5);
  const double x = 2 * std::numbers::pi * (turns - 0.25 * quarter), z = -x * x;
  double cosine = 0, sine = 0;
  for (int n = 18; n >= 2; n -= 2) {
    cosine = (cosine + 1) * z * (1.0 / (n * (n - 1)));
    sine = (sine + 1) * z * (1.0 / (n * (n + 1)));
  }
  const double value = quarter % 2 == 0 ? cosine + 1 : (sine + 1) * x;
  return quarter == 1 || quarter == 2 ? -value : value;
}

// Box-Muller, one number from two draws: element i does not depend on its neighbours.
TANDEM_VECTORS void fill_normal(float* out, std::int64_t first, std::int64_t count, std::uint64_t key,
                                double deviation) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t index = 2 * static_cast<std::uint64_t>(first + i);
    const double radius = std::sqrt(-2 * log_of(uniform(mix(key ^ mix(index)))));
    out[i] = static_cast<float>(deviation * radius * cos_of_turns(uniform(mix(key ^ mix(index + 1)))));
  }
}

// Whisper's: sines, then cosines, of wavelengths from 2 pi to 20,000 pi (transformers' sinusoids()).
void fill_sinusoids(float* out, std::int64_t first, std::int64_t count, std::int64_t columns) {
  constexpr double kLongest = 10000;
  const std::int64_t half = columns / 2;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = (first + i) / columns, column = (first + i) % columns, wave = column % half;
    const double falls = half > 1 ? static_cast<double>(wave) / static_cast<double>(half - 1) : 0;
    const double angle = static_cast<double>(place) * std::pow(kLongest, -falls);
    out[i] = static_cast<float>(column < half ? std::sin(angle) : std::cos(angle));
  }
}

}  // namespace

void fill_initial(float* out, std::int64_t first, std::int64_t count, const Field& field, std::string_view name,
                  std::uint64_t seed) {
  const auto& shape = field.shape;
  const std::uint64_t key = mix(seed) ^ hash(name);
  switch (field.initial.kind) {
    case Initial::Kind::Constant:
      return void(std::fill_n(out, count, field.initial.number));
    case Initial::Kind::Normal:
      return fill_normal(out, first, count, key, field.initial.number);
    case Initial::Kind::Sinusoids:
      return fill_sinusoids(out, first, count, shape.back());
    case Initial::Kind::ByShape:
    case Initial::Kind::Stored:  // not made, but read (stored_values.hpp)
      break;
  }
  if (shape.size() == 1) return void(std::fill_n(out, count, name.ends_with("weight") ? 1.0f : 0.0f));
  // He et al. 2015, equation 10: keeps the variance through relu.
  const double deviation = name.ends_with("relu.weight") ? std::sqrt(2.0 / static_cast<double>(shape[1])) : kDeviation;
  fill_normal(out, first, count, key, deviation);
}

void fill_initial(float* tensor, const Field& field, std::string_view name, std::uint64_t seed) {
  fill_initial(tensor, 0, field.elements(), field, name, seed);
}

void fill_standard_normal(float* out, std::int64_t count, std::uint64_t key) { fill_normal(out, 0, count, key, 1); }

void fill_projector(std::int16_t* places, float* values, std::int64_t rows, std::int64_t nonzeros, std::int64_t columns,
                    std::string_view name, std::uint64_t seed) {
  const double length = std::sqrt(static_cast<double>(columns) / static_cast<double>(rows * nonzeros));
  const std::uint64_t key = mix(seed) ^ hash(name);
  std::uint64_t draw = 0;
  for (std::int64_t row = 0; row < rows; ++row, places += nonzeros, values += nonzeros)
    for (std::int64_t i = 0; i < nonzeros; ++draw) {
      const std::uint64_t bits = mix(key ^ mix(draw));
      const auto place = static_cast<std::int16_t>((bits >> 1) % static_cast<std::uint64_t>(columns));
      if (std::find(places, places + i, place) != places + i) continue;
      places[i] = place;
      values[i++] = static_cast<float>((bits & 1) != 0 ? length : -length);
    }
}

}  // namespace tandem
