// Tokens are drawn as often as their probabilities say, and none that is not among the likeliest.
#include <ATen/ops/full.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kDraws = 40'000;

std::vector<double> shares(double temperature, std::int64_t top_k, const std::vector<float>& logits) {
  Call call;
  call.how = {{"temperature", temperature}, {"top_k", top_k}};
  const auto size = static_cast<std::int64_t>(logits.size());
  at::Tensor rows = at::full({kDraws, size}, 0, at::kFloat);
  for (std::int64_t i = 0; i < size; ++i) rows.select(1, i).fill_(logits[static_cast<std::size_t>(i)]);
  const at::Tensor tokens = find_primitive_body("drawn_token")->reference({call, {rows}, {}, {3, 1, 2, 0, 0, true}})[0];
  std::vector<double> shares;
  for (std::int64_t i = 0; i < size; ++i)
    shares.push_back(static_cast<double>(tokens.eq(i).sum().item<std::int64_t>()) / kDraws);
  return shares;
}

TEST(DrawnToken, ComesAsOftenAsItsProbabilitySays) {
  const std::vector<float> logits{1, -2, 0.5, 0, 3, 1};
  for (const double temperature : {0.7, 1.0, 4.0}) {
    std::vector<double> expected;
    double sum = 0;
    for (const float logit : logits) sum += expected.emplace_back(std::exp(logit / temperature));
    const std::vector<double> seen = shares(temperature, 0, logits);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const double p = expected[i] / sum;
      EXPECT_NEAR(seen[i], p, 5 * std::sqrt(p * (1 - p) / kDraws)) << i << " at " << temperature;
    }
  }
}

TEST(DrawnToken, IsOneOfTheLikeliest) {
  const std::vector<float> logits{1, -2, 0.5, 0, 3, 1};
  const std::vector<double> two = shares(1, 2, logits);  // and its equal
  EXPECT_NEAR(two[0] + two[4] + two[5], 1, 1e-9);
  EXPECT_GT(two[5], 0.05);
  EXPECT_EQ(shares(100, 1, logits)[4], 1);
}

}  // namespace
}  // namespace tandem
