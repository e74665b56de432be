#include <ATen/ops/cross_entropy_loss.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

// In fp32 in every precision, as training under autocast does.
std::vector<PrimitiveCase> cases() {
  PrimitiveCase c;
  c.name = "cross_entropy";
  c.inputs = {{{23, 17}}, {{23}, /*below=*/17, /*sometimes=*/-100}};
  c.build = [](ModuleBuilder& m, const Locals& in) { return Locals{m.cross_entropy("loss", in[0], in[1])}; };
  c.reference = [](const Tensors& in, const Tensors&) {
    return Tensors{at::cross_entropy_loss(in[0].to(at::kFloat), in[1])};
  };
  PrimitiveCase padded = c;  // the last three logits of a row are nobody's
  padded.name = "cross_entropy_beside_padding";
  padded.inputs[0] = {{23, 20}};
  padded.build = [](ModuleBuilder& m, const Locals& in) { return Locals{m.cross_entropy("loss", in[0], in[1], 3)}; };
  padded.reference = [](const Tensors& in, const Tensors&) {
    return Tensors{at::cross_entropy_loss(in[0].narrow(1, 0, 17).to(at::kFloat), in[1])};
  };
  return {c, padded};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
