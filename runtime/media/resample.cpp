#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/base/check.hpp"
#include "runtime/media/sounds.hpp"

namespace tandem {
namespace {

constexpr int kCrossings = 6;
constexpr double kBand = 0.99;

// Of `from` samples `to` are made. The weights of the first of them, of the second, ..., each over `length` samples
// from `reach` before its place on.
struct Filter {
  std::int64_t from = 1, to = 1, reach = 0;
  std::size_t length = 0;
  std::vector<float> weights;
};

double windowed_sinc(double t) {
  t = std::clamp(t, -1.0 * kCrossings, 1.0 * kCrossings);
  const double window = std::pow(std::cos(t * std::numbers::pi / kCrossings / 2), 2);
  const double angle = t * std::numbers::pi;
  return window * (angle == 0 ? 1 : std::sin(angle) / angle);
}

// Of the first `rows` phases.
Filter filter(std::int64_t from, std::int64_t to, std::int64_t rows) {
  Filter f{from, to, 0, 0, {}};
  const double band = kBand * static_cast<double>(std::min(from, to));
  f.reach = static_cast<std::int64_t>(std::ceil(kCrossings * static_cast<double>(from) / band));
  f.length = static_cast<std::size_t>(2 * f.reach + 2);
  for (std::int64_t phase = 0; phase < rows; ++phase) {
    const std::int64_t first = phase * from / to - f.reach;
    for (std::int64_t i = first; i < first + static_cast<std::int64_t>(f.length); ++i) {
      const double t =
          static_cast<double>(i) / static_cast<double>(from) - static_cast<double>(phase) / static_cast<double>(to);
      f.weights.push_back(static_cast<float>(windowed_sinc(t * band) * band / static_cast<double>(from)));
    }
  }
  return f;
}

}  // namespace

Sound resample(const Sound& sound, std::int32_t rate) {
  CHECK(sound.rate >= 1 && rate >= 1, sound.rate, rate);
  if (sound.rate == rate) return sound;
  const std::int32_t common = std::gcd(sound.rate, rate);
  const std::int64_t from = sound.rate / common, to = rate / common;
  const auto count = static_cast<std::int64_t>(sound.samples.size());
  const std::int64_t made = (count * to + from - 1) / from;
  const Filter f = filter(from, to, std::min(made, to));
  // Silence before and behind.
  std::vector<float> padded(static_cast<std::size_t>(count + 2 * f.reach + 2));
  std::copy(sound.samples.begin(), sound.samples.end(), padded.begin() + f.reach);
  Sound out{rate, std::vector<float>(static_cast<std::size_t>(made))};
  for (std::int64_t i = 0; i < made; ++i) {
    const float* before = padded.data() + i * from / to;
    const float* weight = f.weights.data() + static_cast<std::size_t>(i % to) * f.length;
    float sum = 0;
    for (std::size_t j = 0; j < f.length; ++j) sum += before[j] * weight[j];
    out.samples[static_cast<std::size_t>(i)] = sum;
  }
  return out;
}

void fit_length(Sound& sound, std::size_t count) { sound.samples.resize(count); }

}  // namespace tandem
