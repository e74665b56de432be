#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/silu.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

at::Tensor factors(const at::Tensor& like, std::uint64_t stream, double rate) {
  const RandomKey r = PrimitiveCase::random();
  std::uint64_t key = mixed(r.seed + kStep);
  for (const auto part : {r.step, r.module, r.micro_batch, r.rank, static_cast<std::int64_t>(stream)})
    key = mixed(key + (static_cast<std::uint64_t>(part) + 1) * kStep);
  const at::Tensor result = at::empty(like.sizes(), at::kFloat);
  auto* to = result.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < like.numel(); ++i) {
    const auto random = static_cast<double>(mixed(key + static_cast<std::uint64_t>(i) * kStep) >> 32);
    to[i] = random < rate * 4294967296.0 ? 0.0f : static_cast<float>(1 / (1 - rate));
  }
  return result.to(like.scalar_type());
}

// A gradient goes through the same numbers, of a stream each.
std::vector<PrimitiveCase> cases() {
  PrimitiveCase c;
  c.name = "dropout";
  c.inputs = {{{23, 31}}};
  c.build = [](ModuleBuilder& m, const Locals& in) {
    const auto drop = [&](const std::string& name, LocalId x, std::int64_t stream) {
      return m.call(name, "dropout", {x}, {{"rate", 0.25}, {"stream", stream}});
    };
    return Locals{drop("second", m.activation("silu", drop("first", in[0], 0), "silu"), 1)};
  };
  c.reference = [](const Tensors& in, const Tensors&) {
    return Tensors{at::silu(in[0] * factors(in[0], 0, 0.25)) * factors(in[0], 1, 0.25)};
  };
  return {c};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
