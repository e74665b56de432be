// Discrete Fourier transforms of several signals at once, side by side, so that a processor's vectors are full whatever
// the length. Must not know what the signals are.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <vector>

namespace tandem {

class Fourier {
 public:
  static constexpr std::size_t kSignals = 8;
  struct Row {  // one element of each signal
    std::array<double, kSignals> real, imaginary;
  };

  explicit Fourier(std::size_t length);
  // In place; `scratch` has as many rows. X[k] = sum over n of x[n] exp(-2 pi i k n / length).
  void transform(std::vector<Row>& signals, std::vector<Row>& scratch) const;

 private:
  std::vector<std::size_t> factors_;         // whose product is the length
  std::vector<std::complex<double>> roots_;  // exp(-2 pi i k / length)
};

}  // namespace tandem
