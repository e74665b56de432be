// Our Adam beside LibTorch's fused one, in fp32: equal to the bit over whole vectors. LibTorch's scalar loop over the
// last elements rounds otherwise than its own vectors do, and its build without AVX2 fuses nothing.
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <vector>

#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/update.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kWidestVector = 16;

struct Tensors {
  explicit Tensors(std::int64_t elements)
      : gradient(at::randn({elements})),
        master(at::randn({elements})),
        m(at::randn({elements}).mul(0.1)),
        v(at::randn({elements}).abs().mul(0.01)) {}
  Tensors(const Tensors& other)
      : gradient(other.gradient.clone()), master(other.master.clone()), m(other.m.clone()), v(other.v.clone()) {}
  Tensors& operator=(const Tensors&) = delete;
  UpdateSpan span() const {
    return {.gradient = gradient.data_ptr(),
            .m = floats(m),
            .v = floats(v),
            .master = floats(master),
            .elements = gradient.numel()};
  }
  static float* floats(const at::Tensor& tensor) { return tensor.data_ptr<float>(); }
  at::Tensor gradient, master, m, v;
};

void update_with_libtorch(const UpdateOptions& o, std::int64_t step, Tensors& t) {
  const auto adam = o.decoupled ? &at::_ops::_fused_adamw_::call : &at::_ops::_fused_adam_::call;
  adam({t.master}, {t.gradient}, {t.m}, {t.v}, {}, {at::full({}, static_cast<float>(step), at::kFloat)},
       o.learning_rate, o.beta1, o.beta2, o.weight_decay, o.epsilon, /*amsgrad=*/false, /*maximize=*/false,
       std::nullopt, std::nullopt);
}

TEST(AdamLibTorchTest, WholeVectorsAreEqualToTheBitOverManySteps) {
  if (best_isa() == Isa::Scalar) GTEST_SKIP() << "LibTorch's build for processors without AVX2 fuses nothing";
  for (const double beta1 : {0.9, 0.3})
    for (const double weight_decay : {0.0, 0.01})
      for (const bool decoupled : {false, true}) {
        const UpdateOptions options{1e-3, beta1, 0.999, 1e-8, weight_decay, decoupled};
        Tensors ours(4096 * kWidestVector), theirs = ours;
        for (std::int64_t step = 1; step <= 5; ++step) {
          update_elements(update_step(options, step), ours.span());
          update_with_libtorch(options, step, theirs);
          ASSERT_TRUE(ours.m.equal(theirs.m)) << step;
          ASSERT_TRUE(ours.v.equal(theirs.v)) << step;
          ASSERT_TRUE(ours.master.equal(theirs.master)) << step;
        }
      }
}

// What a bf16 parameter and its low half hold is an fp32 master, of which no bit is lost.
TEST(AdamLibTorchTest, SplitMastersAreEqualToTheBitOverManySteps) {
  if (best_isa() == Isa::Scalar) GTEST_SKIP() << "LibTorch's build for processors without AVX2 fuses nothing";
  const UpdateOptions options{1e-3, 0.9, 0.999, 1e-8, 0.01, true};
  Tensors ours(4096 * kWidestVector), theirs = ours;
  std::vector<BFloat16> parameter;
  std::vector<std::int16_t> low;
  for (std::int64_t i = 0; i < ours.master.numel(); ++i) {
    const SplitMaster halves = split_master(Tensors::floats(ours.master)[i]);
    parameter.push_back(halves.parameter);
    low.push_back(halves.low);
  }
  UpdateSpan span = ours.span();
  span.master = nullptr;
  span.parameter = parameter.data();
  span.old_parameter = parameter.data();
  span.master_low = low.data();
  span.parameter_type = DType::BF16;
  for (std::int64_t step = 1; step <= 5; ++step) {
    update_elements(update_step(options, step), span);
    update_with_libtorch(options, step, theirs);
    for (std::size_t i = 0; i < low.size(); ++i) Tensors::floats(ours.master)[i] = join_master({parameter[i], low[i]});
    ASSERT_TRUE(ours.master.equal(theirs.master)) << step;
    ASSERT_TRUE(ours.m.equal(theirs.m)) << step;
    ASSERT_TRUE(ours.v.equal(theirs.v)) << step;
  }
}

TEST(AdamLibTorchTest, TheLastElementsAreEqualToAFewUlps) {
  const UpdateOptions options;
  Tensors ours(kWidestVector - 1), theirs = ours;
  update_elements(update_step(options, 2), ours.span());
  update_with_libtorch(options, 2, theirs);
  for (std::int64_t i = 0; i < ours.m.numel(); ++i) {
    EXPECT_FLOAT_EQ(Tensors::floats(ours.v)[i], Tensors::floats(theirs.v)[i]);
    EXPECT_FLOAT_EQ(Tensors::floats(ours.master)[i], Tensors::floats(theirs.master)[i]);
  }
}

}  // namespace
}  // namespace tandem
