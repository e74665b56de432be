#include <ATen/ops/mse_loss.h>
#include <ATen/ops/mse_loss_backward.h>

#include "runtime/primitives/common/losses.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) {
  a.out[0] = at::mse_loss(a.in[0].to(at::kFloat), a.in[1].to(at::kFloat), at::Reduction::Mean);
}

void backward(Arguments& a) {
  const at::Tensor values[2] = {a.in[0].to(at::kFloat), a.in[1].to(at::kFloat)}, one = loss_gradient(a);
  for (std::size_t i = 0; i < 2; ++i)
    if (a.input_gradients[i].wanted())
      a.input_gradients[i].make([&](at::Tensor out) {
        if (out.scalar_type() == at::kFloat)
          at::mse_loss_backward_out(out, one, values[i], values[1 - i], at::Reduction::Mean);
        else
          out.copy_(at::mse_loss_backward(one, values[i], values[1 - i], at::Reduction::Mean));
      });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {at::mse_loss(c.in[0].to(at::kFloat), c.in[1].to(at::kFloat))};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(squared_error, forward, backward, reference)
