#include "runtime/media/fourier.hpp"

#include <cmath>
#include <numbers>

#include "core/base/check.hpp"

namespace tandem {

Fourier::Fourier(std::size_t length) {
  CHECK(length >= 1, length);
  for (std::size_t k = 0; k < length; ++k)
    roots_.push_back(std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length)));
  std::size_t rest = length;
  for (; rest % 4 == 0; rest /= 4) factors_.push_back(4);  // takes less than two of 2
  for (std::size_t factor = 2; rest > 1; ++factor)
    for (; rest % factor == 0; rest /= factor) factors_.push_back(factor);
}

// Stockham's autosort (Van Loan, "Computational Frameworks for the Fast Fourier Transform", section 1.7), for any
// factors: before a step, x[(q * stride) + j] holds sub-transforms of length `done` ... each step merges `factor` of
// them.
void Fourier::transform(std::vector<Row>& signals, std::vector<Row>& scratch) const {
  const std::size_t length = roots_.size();
  CHECK(signals.size() == length && scratch.size() == length, signals.size(), scratch.size(), length);
  std::size_t done = 1;
  for (const std::size_t factor : factors_) {
    const std::size_t left = length / (done * factor);
    for (std::size_t k = 0; k < done * factor; ++k) {
      const std::size_t turn = k * left % length;  // exp(-2 pi i k / (done * factor))
      for (std::size_t j = 0; j < left; ++j) {
        Row& to = scratch[k * left + j];
        to = {};
        for (std::size_t p = 0; p < factor; ++p) {
          const Row& from = signals[(k % done * factor + p) * left + j];
          const std::complex<double> w = roots_[turn * p % length];
          for (std::size_t s = 0; s < kSignals; ++s) {
            to.real[s] += from.real[s] * w.real() - from.imaginary[s] * w.imag();
            to.imaginary[s] += from.real[s] * w.imag() + from.imaginary[s] * w.real();
          }
        }
      }
    }
    signals.swap(scratch);
    done *= factor;
  }
}

}  // namespace tandem
