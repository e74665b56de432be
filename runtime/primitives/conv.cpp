#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>

#include <array>
#include <optional>
#include <vector>

#include "core/model/window.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

// What LibTorch wants to know of the window: in each direction that the input has.
struct Sides {
  explicit Sides(const Call& call) {
    const Window w(call.how, call.shapes.in[0].dims.size());
    stride = {w.stride_h, w.stride_w}, padding = {w.padding_h, w.padding_w};
    if (!w.is_image) stride.erase(stride.begin()), padding.erase(padding.begin());
    dilation.assign(stride.size(), 1);
    none.assign(stride.size(), 0);
    groups = call.how.integer("groups", 1);
  }
  std::vector<std::int64_t> stride, padding, dilation, none;
  std::int64_t groups;
};

std::optional<at::Tensor> bias_of(const std::vector<at::Tensor>& weights) {
  return weights.size() > 1 ? std::optional(weights[1]) : std::nullopt;
}

void forward(Arguments& a) {
  const Sides s(a.call);
  a.out[0].copy_(at::convolution(a.in[0], a.weights[0], bias_of(a.weights), s.stride, s.padding, s.dilation, false,
                                 s.none, s.groups));
}

// Both gradients come of one call, as autograd makes it. Of an operand that it does not read it wants the shape alone:
// that of the gradient serves.
void backward(Arguments& a) {
  const Sides s(a.call);
  const GradientOut& input = a.input_gradients[0];
  const bool weights = (a.wanted.weights & bit(0)) != 0, bias = (a.wanted.weights & bit(1)) != 0;
  const std::array<std::int64_t, 1> bias_sizes{a.output_gradient.size(1)};
  const auto [grad_input, grad_weight, grad_bias] = at::convolution_backward(
      a.output_gradient, a.in[0].defined() ? a.in[0] : input.target(),
      a.weights[0].defined() ? a.weights[0] : a.weight_gradients[0].target(), bias_sizes, s.stride, s.padding,
      s.dilation, false, s.none, s.groups, {input.wanted(), weights, bias});
  if (weights) a.weight_gradients[0].take(grad_weight);
  if (bias) a.weight_gradients[1].take(grad_bias);
  if (input.wanted()) input.take(grad_input);
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const Sides s(c.call);
  return {at::convolution(c.in[0], c.weights[0], bias_of(c.weights), s.stride, s.padding, s.dilation, false, s.none,
                          s.groups)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(conv, forward, backward, reference)
