#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

struct Sizes {
  std::vector<std::int64_t> x;
  std::int64_t outputs, kernel, stride, padding, groups, bias;
};

PrimitiveCase conv(const std::string& name, const Sizes& s) {
  PrimitiveCase c;
  c.name = "conv_" + name;
  c.inputs = {{s.x}};
  c.build = [s](ModuleBuilder& m, const Locals& in) {
    return Locals{m.call("conv", "conv", in,
                         {{"outputs", s.outputs},
                          {"kernel", s.kernel},
                          {"stride", s.stride},
                          {"padding", s.padding},
                          {"groups", s.groups},
                          {"bias", s.bias}})};
  };
  c.reference = [s](const Tensors& in, const Tensors& w) {
    const std::optional<at::Tensor> bias = s.bias != 0 ? std::optional(w[1]) : std::nullopt;
    if (s.x.size() == 3) return Tensors{at::conv1d(in[0], w[0], bias, s.stride, s.padding, 1, s.groups)};
    return Tensors{at::conv2d(in[0], w[0], bias, s.stride, s.padding, 1, s.groups)};
  };
  std::int64_t positions = s.x[0], kernel = 1;
  for (std::size_t i = 2; i < s.x.size(); ++i) {
    positions *= (s.x[i] + 2 * s.padding - s.kernel) / s.stride + 1;
    kernel *= s.kernel;
  }
  c.forward_flops = 2 * s.outputs * s.x[1] / s.groups * kernel * positions;
  if (s.groups == 1) c.backward_flops = 2 * c.forward_flops;
  return c;
}

// Kernels of their own edges: a lone image in fp32 is LibTorch's own, the others are oneDNN's.
std::vector<PrimitiveCase> cases() {
  return {conv("image", {{3, 3, 16, 16}, 20, 3, 1, 1, 1, 1}),
          conv("without_bias", {{3, 16, 9, 11}, 32, 3, 1, 1, 1, 0}),
          conv("strided", {{2, 19, 14, 14}, 35, 3, 2, 1, 1, 1}),
          conv("strided_point", {{2, 64, 14, 14}, 32, 1, 2, 0, 1, 0}),
          conv("point", {{4, 16, 7, 7}, 48, 1, 1, 0, 1, 1}),
          conv("patches", {{2, 3, 32, 32}, 48, 8, 8, 0, 1, 1}),
          conv("lone_image", {{1, 5, 9, 9}, 12, 3, 1, 1, 1, 1}),
          conv("lone_channel", {{1, 1, 28, 28}, 6, 5, 1, 2, 1, 1}),
          conv("grouped", {{2, 24, 9, 9}, 36, 3, 1, 1, 4, 1}),
          conv("depthwise", {{2, 40, 14, 14}, 40, 7, 1, 3, 40, 1}),
          conv("depthwise_strided", {{2, 32, 9, 9}, 32, 3, 2, 1, 32, 0}),
          conv("sequence", {{2, 20, 50}, 24, 3, 1, 1, 1, 1}),
          conv("sequence_strided", {{2, 24, 51}, 24, 3, 2, 1, 1, 1}),
          conv("waves", {{2, 1, 400}, 32, 10, 5, 0, 1, 0}),
          conv("sequence_grouped", {{2, 32, 49}, 32, 16, 1, 8, 4, 1}),
          conv("lone_sequence", {{1, 20, 50}, 24, 3, 2, 1, 1, 1})};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
