// A number as LibTorch's kernels take it beside a tensor, whose type the result then has. Out-variants that take a
// number itself make the result twice, and x.mul_(number) rounds the number to 16 bits first, as autograd's product
// does not.
#pragma once

#include <ATen/ScalarOps.h>
#include <ATen/ops/mul.h>

namespace tandem {

inline at::Tensor number(double value) { return at::native::wrapped_scalar_tensor(value); }
inline void multiply_by(at::Tensor x, double factor) { at::mul_out(x, x, number(factor)); }

}  // namespace tandem
