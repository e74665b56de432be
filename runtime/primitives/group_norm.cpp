#include <ATen/ops/group_norm.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/native_group_norm_backward.h>

#include <tuple>

#include "runtime/primitives/common/norm_gradients.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

struct Sizes {
  explicit Sizes(const Arguments& a)
      : batch(a.in[0].size(0)), channels(a.in[0].size(1)), groups(a.call.how.integer("groups")) {
    positions = a.in[0].numel() / (batch * channels);
  }
  std::int64_t batch, channels, groups, positions;
};

void forward(Arguments& a) {
  const Sizes s(a);
  const auto [out, mean, rstd] = at::native_group_norm(a.in[0], a.weights[0], a.weights[1], s.batch, s.channels,
                                                       s.positions, s.groups, a.call.how.number("epsilon"));
  a.out[0].copy_(out);
  if (!a.saved[0].defined()) return;
  a.saved[0].copy_(mean);
  a.saved[1].copy_(rstd);
}

void backward(Arguments& a) {
  const Sizes s(a);
  // In the precision in which forward gave them.
  const at::ScalarType type = a.in[0].scalar_type();
  const auto [grad_input, grad_weight, grad_bias] =
      at::native_group_norm_backward(a.output_gradient, a.in[0], a.saved[0].to(type), a.saved[1].to(type), a.weights[0],
                                     s.batch, s.channels, s.positions, s.groups, wanted_of_norm(a));
  take_norm_gradients(a, grad_input, grad_weight, grad_bias);
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const Attributes& how = c.call.how;
  return {at::group_norm(c.in[0], how.integer("groups"), c.weights[0], c.weights[1], how.number("epsilon"))};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(group_norm, forward, backward, reference)
