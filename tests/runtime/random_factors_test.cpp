// What dropout multiplies by is the same however it is made, and as often zero as it is told.
#include "runtime/primitives/common/random_factors.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "runtime/torch_setup.hpp"

namespace tandem {
namespace {

at::Tensor factors(const RandomKey& random, std::int64_t stream, double rate, at::ScalarType type = at::kFloat) {
  const at::Tensor result = at::empty({5, 400000}, type);
  fill_random_factors(result, stream_key(random, stream), rate);
  return result;
}

constexpr RandomKey kKey{11, 2, 3, 1, 0, true};

TEST(RandomFactors, AreTheSameByKernels) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const at::Tensor by_kernels = at::empty({5, 400000}, type);
    fill_random_factors_by_kernels(by_kernels, stream_key(kKey, 4), 0.1);
    EXPECT_TRUE(at::equal(factors(kKey, 4, 0.1, type), by_kernels)) << type;
  }
}

TEST(RandomFactors, UniformNumbersAreTheSameByKernels) {
  const at::Tensor one = at::empty({3, 400000}, at::kFloat), by_kernels = at::empty_like(one);
  fill_uniform(one, stream_key(kKey, 4));
  fill_uniform_by_kernels(by_kernels, stream_key(kKey, 4));
  EXPECT_TRUE(at::equal(one, by_kernels));
  EXPECT_GT(one.min().item<double>(), 0);
  EXPECT_LT(one.max().item<double>(), 1);
  EXPECT_NEAR(one.to(at::kDouble).mean().item<double>(), 0.5, 0.0014);  // five deviations
}

TEST(RandomFactors, AreTheSameOnAnyNumberOfThreads) {
  set_thread_count(1);
  const at::Tensor one = factors(kKey, 0, 0.5);
  set_thread_count(2);
  EXPECT_TRUE(at::equal(one, factors(kKey, 0, 0.5)));
}

TEST(RandomFactors, DropAsOftenAsTheyAreTold) {
  for (const double rate : {0.0, 0.1, 0.5, 0.9}) {
    const at::Tensor dropped = factors(kKey, 0, rate).eq(0);
    // Of two million numbers, within five deviations, which are at most 0.00036 each.
    EXPECT_NEAR(dropped.to(at::kDouble).mean().item<double>(), rate, 0.0018);
  }
}

// A half of the numbers agree by chance.
TEST(RandomFactors, DifferByAllThatTheyFollowFrom) {
  const at::Tensor first = factors(kKey, 0, 0.5);
  std::vector<RandomKey> others(5, kKey);
  others[0].seed += 1, others[1].step += 1, others[2].module += 1, others[3].micro_batch += 1, others[4].rank += 1;
  for (const RandomKey& other : others)
    EXPECT_NEAR(first.eq(factors(other, 0, 0.5)).to(at::kDouble).mean().item<double>(), 0.5, 0.0018);
  EXPECT_NEAR(first.eq(factors(kKey, 1, 0.5)).to(at::kDouble).mean().item<double>(), 0.5, 0.0018);
}

}  // namespace
}  // namespace tandem
