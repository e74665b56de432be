#include <ATen/ops/argmax.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

at::Tensor without_padding(const Call& call, const at::Tensor& logits) {
  return logits.narrow(1, 0, logits.size(1) - call.how.integer("padding", 0));
}

void forward(Arguments& a) { at::argmax_out(a.out[0], without_padding(a.call, a.in[0]), 1); }

std::vector<at::Tensor> reference(const ReferenceCall& c) { return {at::argmax(without_padding(c.call, c.in[0]), 1)}; }

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(likeliest, forward, nullptr, reference)
