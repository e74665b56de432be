#include <ATen/ops/abs.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/log.h>
#include <ATen/ops/min.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

// As transformers' T5 writes it.
at::Tensor buckets(std::int64_t queries, std::int64_t keys, std::int64_t count, std::int64_t most, bool both) {
  at::Tensor relative = at::arange(keys, at::kLong).unsqueeze(0) - at::arange(queries, at::kLong).unsqueeze(1);
  at::Tensor result = at::zeros_like(relative);
  if (both) {
    count /= 2;
    result = result + (relative > 0).to(at::kLong) * count;
    relative = at::abs(relative);
  } else {
    relative = -at::min(relative, at::zeros_like(relative));
  }
  const std::int64_t exact = count / 2;
  const double span = std::log(static_cast<double>(most) / static_cast<double>(exact));
  at::Tensor large = exact + (at::log(relative.to(at::kFloat) / exact) / span * (count - exact)).to(at::kLong);
  large = at::min(large, at::full_like(large, count - 1));
  return result + at::where(relative < exact, relative, large);
}

PrimitiveCase relative_bias(const std::string& name, std::int64_t queries, std::int64_t keys, std::int64_t both) {
  PrimitiveCase c;
  c.name = name;
  c.build = [=](ModuleBuilder& m, const Locals&) {
    return Locals{m.call("bias", "relative_bias", {},
                         {{"heads", std::int64_t{3}},
                          {"queries", queries},
                          {"keys", keys},
                          {"buckets", std::int64_t{12}},
                          {"most", std::int64_t{20}},
                          {"bidirectional", both}})};
  };
  c.reference = [=](const Tensors&, const Tensors& w) {
    return Tensors{at::embedding(w[0], buckets(queries, keys, 12, 20, both != 0)).permute({2, 0, 1})};
  };
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {relative_bias("relative_bias", 29, 31, 1), relative_bias("relative_bias_large", 150, 170, 1),
          relative_bias("relative_bias_before", 33, 33, 0)};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
