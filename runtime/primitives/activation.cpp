#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/threshold_backward.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

const char* approximation(const std::string& kind) { return kind == "gelu_tanh" ? "tanh" : "none"; }

void forward(Arguments& a) {
  const std::string& kind = a.call.how.word("kind");
  at::Tensor out = a.out[0];
  if (kind != "relu") {
    at::gelu_out(out, a.in[0], approximation(kind));
  } else if (out.data_ptr() == a.in[0].data_ptr()) {
    out.relu_();
  } else {
    at::relu_out(out, a.in[0]);
  }
}

void backward(Arguments& a) {
  const std::string& kind = a.call.how.word("kind");
  a.input_gradients[0].make([&](at::Tensor out) {
    if (kind == "relu")
      at::threshold_backward_out(out, a.output_gradient, a.out[0], 0);
    else
      at::gelu_backward_out(out, a.output_gradient, a.in[0], approximation(kind));
  });
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(activation, forward, backward)
