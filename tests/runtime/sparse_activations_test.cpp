// Networks whose saved activations are stored sparse: where all numbers are kept, training is as without, to the bit;
// where fewer are, it is the same under every policy, and costs some loss. LibTorch's top-k keeps the same numbers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/workloads/workload.hpp"
#include "runtime/optimizer/sparse_blocks.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/exact_run.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario scenario_of(const std::string& family, const char* policy, double keep) {
  Scenario s = testing::gpt_scenario(policy, 512 * kMiB, 2);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 512 * kMiB;
  s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 512 * kMiB;
  if (family != "gpt") {
    s.workload.family = family;
    s.workload.keys = find_workload(family)->keys->small_instance();
  }
  s.workload.batch = 32;
  s.workload.micro_batches = 2;
  s.workload.sparse_activations.keep = keep;
  s.seed = 7;
  return s;
}

std::vector<double> losses_of(const Scenario& scenario) {
  Training training(scenario, {});
  run_checked(training);
  return losses_of(training);
}

TEST(SparseActivationsOf, AllNumbersAreThoseOfDenseTraining) {
  expect_trains_as_reference(scenario_of("gpt", "resident", 1));
  for (const char* family : {"gpt", "convnet"})
    EXPECT_EQ(losses_of(scenario_of(family, "resident", 1)), losses_of(scenario_of(family, "resident", 0))) << family;
}

TEST(SparseActivationsOf, AQuarterAreTheSameUnderEveryPolicy) {
  const std::vector<double> resident = losses_of(scenario_of("gpt", "resident", 0.25));
  EXPECT_NE(resident, losses_of(scenario_of("gpt", "resident", 0)));
  // l2l makes what is saved again, from inputs that stay dense.
  for (const char* policy : {"ssdtrain", "zero_infinity"})
    EXPECT_EQ(losses_of(scenario_of("gpt", policy, 0.25)), resident) << policy;
}

// Magnitudes that all differ: which of equal ones LibTorch takes is not said.
TEST(SparseActivationsOf, TopKAreTheSame) {
  constexpr std::int64_t kBlocks = 33, kKept = 16;
  at::Tensor numbers = at::randperm(kBlocks * kSparseBlock).to(at::kFloat).add_(1);
  numbers.mul_(at::where(at::rand_like(numbers) < 0.5, -1.0, 1.0));
  const at::Tensor blocks = numbers.view({kBlocks, kSparseBlock});
  const at::Tensor places = std::get<1>(blocks.abs().topk(kKept, 1));
  const at::Tensor expected = at::zeros_like(blocks).scatter_(1, places, blocks.gather(1, places)).flatten();
  std::vector<std::byte> sparse(static_cast<std::size_t>(sparse_bytes(numbers.numel(), kKept, 4)));
  at::Tensor back = at::empty_like(numbers);
  encode_sparse(sparse_span(numbers.data_ptr(), sparse.data(), DType::F32, numbers.numel(), kKept));
  decode_sparse(sparse_span(back.data_ptr(), sparse.data(), DType::F32, numbers.numel(), kKept));
  EXPECT_TRUE(at::equal(back, expected));
}

// Real text and digits, a few dozen steps, as docs/compression.md has them: the mean of the last ten losses.
TEST(SparseActivationsOf, SmallNetworksCostSomeLoss) {
  for (const char* family : {"gpt", "convnet"}) {
    const auto loss_with = [&](double keep) {
      Scenario s = scenario_of(family, "resident", keep);
      s.workload.micro_batches = 1;
      s.steps = 40;
      const std::vector<double> losses = losses_of(s);
      constexpr std::ptrdiff_t kLast = 10;
      EXPECT_LT(losses.back(), losses.front());
      return std::accumulate(losses.end() - kLast, losses.end(), 0.0) / kLast;
    };
    const double dense = loss_with(0);
    for (const double keep : {0.5, 0.25, 0.125})
      std::printf("%s: loss %.4f, %g kept %+.4f\n", family, dense, keep, loss_with(keep) - dense);
  }
}

}  // namespace
}  // namespace tandem
