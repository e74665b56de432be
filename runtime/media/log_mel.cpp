#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/check.hpp"
#include "runtime/media/fourier.hpp"
#include "runtime/media/sounds.hpp"

namespace tandem {
namespace {

// Slaney's scale ("Auditory Toolbox", 1998): linear up to 1 kHz, then logarithmic.
constexpr double kLinearHz = 200.0 / 3, kBreakHz = 1000, kBreakMel = kBreakHz / kLinearHz;
const double kLogStep = std::log(6.4) / 27;

double mel_of(double hz) { return hz < kBreakHz ? hz / kLinearHz : kBreakMel + std::log(hz / kBreakHz) / kLogStep; }
double hz_of(double mel) {
  return mel < kBreakMel ? mel * kLinearHz : kBreakHz * std::exp(kLogStep * (mel - kBreakMel));
}

// A triangle over some neighbouring frequencies of a spectrum.
struct Band {
  std::size_t first = 0;
  std::vector<double> weights;
};

std::vector<Band> bands(const LogMelOptions& o, std::size_t window) {
  std::vector<double> corners;
  const double top = mel_of(o.rate / 2.0);
  for (int i = 0; i < o.mels + 2; ++i) corners.push_back(hz_of(top * i / (o.mels + 1)));
  std::vector<Band> out(static_cast<std::size_t>(o.mels));
  for (std::size_t m = 0; m < out.size(); ++m) {
    const double low = corners[m], centre = corners[m + 1], high = corners[m + 2], area = 2 / (high - low);
    for (std::size_t k = 0; k <= window / 2; ++k) {
      const double hz = static_cast<double>(k) * o.rate / static_cast<double>(window);
      const double weight = std::min((hz - low) / (centre - low), (high - hz) / (high - centre));
      if (weight <= 0) continue;
      if (out[m].weights.empty()) out[m].first = k;
      out[m].weights.push_back(weight * area);
    }
  }
  return out;
}

// Beyond its ends, the signal backwards.
float mirrored(std::span<const float> samples, std::ptrdiff_t at) {
  const auto last = static_cast<std::ptrdiff_t>(samples.size()) - 1;
  if (at < 0) at = -at;
  return samples[static_cast<std::size_t>(at > last ? 2 * last - at : at)];
}

}  // namespace

struct LogMel::Tables {
  explicit Tables(const LogMelOptions& o)
      : hop(static_cast<std::size_t>(o.rate) / 100), window(hop * 5 / 2), fourier(window), mels(bands(o, window)) {
    for (std::size_t i = 0; i < window; ++i)
      hann.push_back(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(window)));
  }
  std::size_t hop, window;
  Fourier fourier;
  std::vector<Band> mels;
  std::vector<double> hann;
};

std::vector<float> mel_filters(const LogMelOptions& options) {
  const std::size_t window = static_cast<std::size_t>(options.rate) / 100 * 5 / 2, frequencies = window / 2 + 1;
  std::vector<float> filters(static_cast<std::size_t>(options.mels) * frequencies, 0.0F);
  std::size_t row = 0;
  for (const Band& band : bands(options, window)) {
    for (std::size_t k = 0; k < band.weights.size(); ++k)
      filters[row * frequencies + band.first + k] = static_cast<float>(band.weights[k]);
    ++row;
  }
  return filters;
}

LogMel::LogMel(const LogMelOptions& options) {
  CHECK(options.rate >= 200 && options.rate % 200 == 0 && options.mels >= 1, options.rate, options.mels);
  tables_ = std::make_unique<const Tables>(options);
}
LogMel::~LogMel() = default;
LogMel::LogMel(LogMel&&) noexcept = default;

std::size_t LogMel::frames(std::size_t samples) const { return samples / tables_->hop; }
std::size_t LogMel::least_samples() const { return tables_->window / 2 + 1; }

void LogMel::operator()(std::span<const float> samples, std::span<float> out) const {
  const Tables& t = *tables_;
  const std::size_t count = frames(samples.size());
  CHECK(out.size() == t.mels.size() * count && samples.size() >= least_samples(), out.size(), samples.size());
  // Two frames are the real and the imaginary part of one signal: of its spectrum Z, theirs are the parts that are even
  // and odd under conjugation.
  constexpr std::size_t kAtOnce = 2 * Fourier::kSignals;
  std::vector<Fourier::Row> signals(t.window), scratch(t.window);
  std::vector<double> power(kAtOnce * (t.window / 2 + 1));
  double largest = -10;
  for (std::size_t first = 0; first < count; first += kAtOnce) {
    const auto sample = [&](std::size_t frame, std::size_t i) -> double {
      if (frame >= count) return 0;
      const auto at = static_cast<std::ptrdiff_t>(frame * t.hop + i) - static_cast<std::ptrdiff_t>(t.window / 2);
      return t.hann[i] * mirrored(samples, at);
    };
    for (std::size_t i = 0; i < t.window; ++i)
      for (std::size_t s = 0; s < Fourier::kSignals; ++s)
        signals[i].real[s] = sample(first + 2 * s, i), signals[i].imaginary[s] = sample(first + 2 * s + 1, i);
    t.fourier.transform(signals, scratch);
    for (std::size_t k = 0; k <= t.window / 2; ++k) {
      const Fourier::Row &z = signals[k], &y = signals[(t.window - k) % t.window];
      for (std::size_t s = 0; s < Fourier::kSignals; ++s) {
        const double a = z.real[s] + y.real[s], b = z.imaginary[s] - y.imaginary[s];
        const double c = z.imaginary[s] + y.imaginary[s], d = y.real[s] - z.real[s];
        power[k * kAtOnce + 2 * s] = (a * a + b * b) / 4;
        power[k * kAtOnce + 2 * s + 1] = (c * c + d * d) / 4;
      }
    }
    for (std::size_t m = 0; m < t.mels.size(); ++m) {
      std::array<double, kAtOnce> sums{};
      for (std::size_t j = 0; j < t.mels[m].weights.size(); ++j)
        for (std::size_t s = 0; s < kAtOnce; ++s)
          sums[s] += t.mels[m].weights[j] * power[(t.mels[m].first + j) * kAtOnce + s];
      for (std::size_t s = 0; s < std::min(kAtOnce, count - first); ++s) {
        const double level = std::log10(std::max(sums[s], 1e-10));
        largest = std::max(largest, level);
        out[m * count + first + s] = static_cast<float>(level);
      }
    }
  }
  for (float& level : out) level = static_cast<float>((std::max<double>(level, largest - 8) + 4) / 4);
}

}  // namespace tandem
