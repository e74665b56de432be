#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

// The weight is an input: modules share it.
bool shares(const Call& call) { return call.in.size() > 1; }
bool biased(const Call& call) { return call.shapes.weights.size() == (shares(call) ? 1 : 2); }
// Where each rank's result is a summand, one of them has the bias in it; all make its gradient, which is the same.
bool adds_bias(const Call& call) { return biased(call) && call.how.integer("part", 0) == 0; }

const at::Tensor& weight_of(const Arguments& a) { return shares(a.call) ? a.in[1] : a.weights[0]; }

void forward(Arguments& a) {
  const at::Tensor weight = weight_of(a).t();
  if (adds_bias(a.call))
    at::addmm_out(a.out[0], a.weights.back(), a.in[0], weight);
  else
    at::mm_out(a.out[0], a.in[0], weight);
}

void backward(Arguments& a) {
  const at::Tensor& grad = a.output_gradient;
  if (a.input_gradients[0].wanted())
    a.input_gradients[0].make([&](at::Tensor out) { at::mm_out(out, grad, weight_of(a)); });
  const auto product = [&](at::Tensor out) { at::mm_out(out, grad.t(), a.in[0]); };
  if (shares(a.call) && a.input_gradients[1].wanted()) a.input_gradients[1].make(product);
  if (a.wanted.weights == 0) return;
  if (!shares(a.call) && a.weight_gradients[0].wanted()) a.weight_gradients[0].make(product);
  if (biased(a.call) && a.weight_gradients.back().wanted())
    a.weight_gradients.back().make([&](at::Tensor out) { at::sum_out(out, grad, 0); });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const at::Tensor weight = (shares(c.call) ? c.in[1] : c.weights[0]).t();
  return {adds_bias(c.call) ? at::addmm(c.weights.back(), c.in[0], weight) : at::mm(c.in[0], weight)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(linear, forward, backward, reference)
