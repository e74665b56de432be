// What networks of images have beside convolutions: pooling, norms, a UNet's skips and times.
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <cmath>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

using Reference = std::function<at::Tensor(const Tensors& in, const Tensors& weights)>;
using Shapes = std::vector<CaseInput>;

PrimitiveCase one(const std::string& name, const std::string& primitive, Shapes inputs, const Attributes& how,
                  const Reference& reference) {
  PrimitiveCase c;
  c.name = name;
  c.inputs = std::move(inputs);
  c.build = [primitive, how](ModuleBuilder& m, const Locals& in) { return Locals{m.call("call", primitive, in, how)}; };
  c.reference = [reference](const Tensors& in, const Tensors& weights) { return Tensors{reference(in, weights)}; };
  c.forward_flops = c.backward_flops = 0;
  return c;
}

Attributes window(const std::string& kind, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return {{"kind", kind}, {"kernel", kernel}, {"stride", stride}, {"padding", padding}};
}

std::vector<PrimitiveCase> pools() {
  return {one("pool_max", "pool", {{{2, 5, 9, 12}}}, window("max", 3, 2, 1),
              [](const Tensors& in, const Tensors&) { return at::max_pool2d(in[0], 3, 2, 1); }),
          one("pool_average", "pool", {{{2, 5, 9, 12}}}, window("average", 3, 2, 1),
              [](const Tensors& in, const Tensors&) { return at::avg_pool2d(in[0], 3, 2, 1); }),
          one("pool_max_of_sequence", "pool", {{{2, 5, 31}}}, window("max", 2, 2, 0),
              [](const Tensors& in, const Tensors&) { return at::max_pool1d(in[0], 2, 2); }),
          one("pool_average_of_sequence", "pool", {{{2, 5, 31}}}, window("average", 2, 2, 0),
              [](const Tensors& in, const Tensors&) { return at::avg_pool1d(in[0], 2, 2); }),
          one("pool_sides", "pool", {{{2, 5, 9, 12}}},
              {{"kind", "average"},
               {"kernel_h", std::int64_t{2}},
               {"kernel_w", std::int64_t{3}},
               {"stride_h", std::int64_t{1}},
               {"stride_w", std::int64_t{3}}},
              [](const Tensors& in, const Tensors&) {
                return at::avg_pool2d(in[0], {2, 3}, {1, 3});
              }),
          one("pool_global", "pool", {{{2, 5, 9, 12}}}, {{"kind", "average"}, {"kernel", std::int64_t{0}}},
              [](const Tensors& in, const Tensors&) {
                return in[0].mean(at::IntArrayRef({2, 3}));
              })};
}

std::vector<PrimitiveCase> norms() {
  const auto batch = [](const Tensors& in, const Tensors& w) {
    return at::batch_norm(in[0], w[0], w[1], {}, {}, true, 0.1, 1e-5, false);
  };
  const Attributes epsilon = {{"epsilon", 1e-5}};
  return {
      one("group_norm", "group_norm", {{{3, 12, 5, 7}}}, {{"groups", std::int64_t{4}}, {"epsilon", 1e-6}},
          [](const Tensors& in, const Tensors& w) { return at::group_norm(in[0], 4, w[0], w[1], 1e-6); }),
      one("group_norm_of_sequence", "group_norm", {{{3, 12, 35}}}, {{"groups", std::int64_t{12}}, {"epsilon", 1e-5}},
          [](const Tensors& in, const Tensors& w) { return at::group_norm(in[0], 12, w[0], w[1], 1e-5); }),
      one("batch_norm", "batch_norm", {{{6, 12, 5, 7}}}, epsilon, batch),
      one("batch_norm_of_sequence", "batch_norm", {{{6, 12, 35}}}, epsilon, batch),
      one("batch_norm_of_rows", "batch_norm", {{{40, 12}}}, epsilon, batch)};
}

// Of what the module makes itself: a sum's gradient is its first input's as it lies.
PrimitiveCase add_channels(const std::string& name, Shapes inputs) {
  PrimitiveCase c;
  c.name = name;
  c.inputs = std::move(inputs);
  c.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.call("sum", "add_channels", {m.activation("x", in[0], "relu"), in[1]}, {})};
  };
  c.reference = [](const Tensors& in, const Tensors&) {
    std::vector<std::int64_t> sizes(in[0].sizes().size(), 1);
    sizes[0] = in[1].size(0), sizes[1] = in[1].size(1);
    return Tensors{at::relu(in[0]) + in[1].view(sizes)};
  };
  return c;
}

// A UNet's level: what goes down comes back beside what came up.
PrimitiveCase unet() {
  PrimitiveCase c;
  c.name = "unet";
  c.inputs = {{{2, 3, 8, 6}}, {{2, 8}}};
  c.build = [](ModuleBuilder& m, const Locals& in) {
    const LocalId wide =
        m.call("wide", "conv", {in[0]},
               {{"outputs", std::int64_t{8}}, {"kernel", std::int64_t{3}}, {"padding", std::int64_t{1}}});
    const LocalId timed = m.call("timed", "add_channels", {wide, in[1]}, {});
    const LocalId low = m.call("low", "pool", {timed}, window("average", 2, 2, 0));
    const LocalId up = m.call("up", "upsample", {low}, {{"factor", std::int64_t{2}}});
    return Locals{m.call("both", "concat", {up, timed}, {{"axis", std::int64_t{1}}})};
  };
  c.reference = [](const Tensors& in, const Tensors& w) {
    const at::Tensor wide = at::conv2d(in[0], w[0], w[1], 1, 1);
    const at::Tensor timed = wide + in[1].unsqueeze(-1).unsqueeze(-1);
    const at::Tensor up = at::upsample_nearest2d(at::avg_pool2d(timed, 2, 2), {8, 6});
    return Tensors{at::cat({up, timed}, 1)};
  };
  return c;
}

at::Tensor waves(const at::Tensor& numbers) {
  const at::Tensor frequencies = at::exp(at::arange(12, at::kFloat) * (-std::log(10000.0) / 11));
  const at::Tensor angles = numbers.to(at::kFloat).unsqueeze(1) * frequencies;
  return at::cat({angles.sin(), angles.cos()}, 1);
}

std::vector<PrimitiveCase> cases() {
  std::vector<PrimitiveCase> all = pools();
  for (PrimitiveCase& c : norms()) all.push_back(std::move(c));
  all.push_back(one("upsample", "upsample", {{{2, 5, 4, 7}}}, {{"factor", std::int64_t{2}}},
                    [](const Tensors& in, const Tensors&) {
                      return at::upsample_nearest2d(in[0], {8, 14});
                    }));
  all.push_back(one("concat", "concat", {{{2, 3, 5}}, {{2, 1, 5}}, {{2, 4, 5}}}, {{"axis", std::int64_t{1}}},
                    [](const Tensors& in, const Tensors&) { return at::cat(in, 1); }));
  all.push_back(add_channels("add_channels", {{{2, 5, 4, 7}}, {{2, 5}}}));
  all.push_back(add_channels("add_channels_of_sequence", {{{2, 5, 28}}, {{2, 5}}}));
  all.push_back(one("sinusoids", "sinusoids", {{{6}, /*below=*/1000}},
                    {{"dim", std::int64_t{24}}, {"period", 10000.0}, {"shift", std::int64_t{1}}},
                    [](const Tensors& in, const Tensors&) { return waves(in[0]); }));
  all.push_back(
      one("sinusoids_that_begin_later", "sinusoids", {{{6}, /*below=*/1000}},
          {{"dim", std::int64_t{24}}, {"period", 10000.0}, {"shift", std::int64_t{1}}, {"first", std::int64_t{301}}},
          [](const Tensors& in, const Tensors&) { return waves(in[0] + 301); }));
  for (std::size_t i = 1; i <= 2; ++i)
    all[all.size() - i].bf16_error = -1;  // nothing that its reference reads tells the precision
  all.push_back(unet());
  return all;
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
