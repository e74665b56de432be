// Fits a pair of projectors to a gradient, and takes Adam's moments along. Must not know ops.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tandem {

// A projector's non-zeros as a dense matrix [rows, d]: `places` [rows, r] are int64 columns, distinct in a row.
void expand_projector(const at::Tensor& places, const at::Tensor& values, const at::Tensor& dense);

class SubspaceFit {
 public:
  struct Projector {
    at::Tensor places, values;  // int16 and fp32, [rows, r]; the values are fitted where they are
  };
  // The gradient is [m, n], the projectors have m and n rows, and `rank` columns.
  SubspaceFit(const at::Tensor& gradient, const Projector& left, const Projector& right, std::int64_t rank);

  // Where the relative bias is above the threshold, and fitting lowers it, changes the projectors' values and the
  // moments, fp32 [rank, rank]; else not a bit. `may_wait`: for the bias, to save the fit where it is small.
  void run(double threshold, const at::Tensor& m, const at::Tensor& v, bool may_wait);

 private:
  struct Side {
    at::Tensor places, values, old_values, m, v;  // Adam's moments of the values
    at::Tensor dense, product, gradient;          // [rows, rank] in the gradient's precision
    double rate;
  };
  static Side side_of(const Projector& projector, const at::Tensor& like, std::int64_t rank);
  at::Tensor square_bias();  // relative, 0-dimensional, fp32; leaves the products behind
  void find_gradients();
  void step(Side& side, int index) const;
  void choose(const at::Tensor& accepted, const at::Tensor& m, const at::Tensor& v);

  at::Tensor gradient_, square_norm_;
  Side left_, right_;
  at::Tensor s_, left_square_, right_square_, a_, b_, t_;  // [rank, rank]
};

}  // namespace tandem
