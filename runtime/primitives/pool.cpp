#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool2d_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mean.h>

#include <array>
#include <optional>

#include "core/model/window.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using Pair = std::array<std::int64_t, 2>;
struct Sides {
  explicit Sides(const Call& call) {
    const Window w(call.how, call.shapes.in[0].dims.size());
    kernel = {w.kernel_h, w.kernel_w}, stride = {w.stride_h, w.stride_w}, padding = {w.padding_h, w.padding_w};
  }
  Pair kernel, stride, padding;
};

// A sequence is an image of one row.
at::Tensor image(const at::Tensor& x) { return x.dim() == 3 ? x.unsqueeze(2) : x; }
bool is_max(const Call& call) { return call.how.word("kind") == "max"; }
bool is_global(const Call& call) { return call.shapes.out[0].dims.size() == 2; }

void forward(Arguments& a) {
  if (is_global(a.call)) {
    at::mean_out(a.out[0], a.in[0].view({a.in[0].size(0), a.in[0].size(1), -1}), 2);
    return;
  }
  const Sides s(a.call);
  at::Tensor out = image(a.out[0]);
  if (!is_max(a.call)) {
    at::avg_pool2d_out(out, image(a.in[0]), s.kernel, s.stride, s.padding);
    return;
  }
  at::Tensor places = a.saved[0].defined() ? image(a.saved[0]) : at::empty(out.sizes(), out.options().dtype(at::kLong));
  at::max_pool2d_with_indices_out(out, places, image(a.in[0]), s.kernel, s.stride, s.padding, Pair{1, 1}, false);
}

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const at::Tensor& out) {
    const at::Tensor& grad = a.output_gradient;
    if (is_global(a.call)) {
      const at::Tensor all = out.view({out.size(0), out.size(1), -1});
      all.copy_(grad.unsqueeze(2).expand_as(all));
      out.div_(all.size(2));
      return;
    }
    const Sides s(a.call);
    at::Tensor to = image(out);
    if (is_max(a.call))  // of its input it wants the shape
      at::max_pool2d_with_indices_backward_out(to, image(grad), to, s.kernel, s.stride, s.padding, Pair{1, 1}, false,
                                               image(a.saved[0]));
    else
      at::avg_pool2d_backward_out(to, image(grad), to, s.kernel, s.stride, s.padding, false, true, std::nullopt);
  });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const at::Tensor& x = c.in[0];
  if (is_global(c.call)) return {x.flatten(2).mean(2)};
  const Sides s(c.call);
  const at::Tensor out = is_max(c.call) ? at::max_pool2d(image(x), s.kernel, s.stride, s.padding)
                                        : at::avg_pool2d(image(x), s.kernel, s.stride, s.padding);
  return {x.dim() == 3 ? out.squeeze(2) : out};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(pool, forward, backward, reference)
