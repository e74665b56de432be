// A batch that is cut into micro-batches trains as the whole one: losses and evaluations agree to rounding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/analysis.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kSamples = 8;

struct Losses {
  std::vector<double> training, validation;
};

class BatchCutsTest : public ::testing::TestWithParam<const char*> {
 protected:
  static Losses train(const std::string& family, std::int64_t micro_batches) {
    set_thread_count(1);
    Scenario s = testing::gpt_scenario("zero_offload", 64 * kMiB, 2);
    s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
    s.workload.family = family;
    s.workload.keys["vocabulary"] = 257;
    s.workload.keys["inputs"] = 64;
    s.workload.keys["classes"] = 10;
    s.workload.micro_batches = micro_batches;
    s.workload.batch = kSamples / micro_batches;
    s.validation = {.every = 3, .batches = static_cast<std::int32_t>(2 * micro_batches)};
    s.steps = 6;
    s.seed = 11;
    Training training(s);
    training.run();
    const RunRecord record = training.record();
    const Analysis analysis = analyse(record);
    Losses losses{analysis.loss, {}};
    for (const Validation& at : analysis.validation_loss) losses.validation.push_back(at.loss);
    return losses;
  }
};

TEST_P(BatchCutsTest, TrainAsTheWholeBatch) {
  // The first step's loss has no update behind it: rounding alone. Adam turns a gradient's rounding into at most a
  // small part of the learning rate, a step.
  constexpr double kRounding = 2e-6, kAfterUpdates = 1e-3;
  const Losses whole = train(GetParam(), 1);
  ASSERT_EQ(whole.training.size(), 6U);
  ASSERT_EQ(whole.validation.size(), 2U);
  EXPECT_GT(std::abs(whole.training[0] - whole.training[1]), 3 * kAfterUpdates) << "steps have samples of their own";
  for (const std::int64_t micro_batches : {2, 8}) {
    const Losses cut = train(GetParam(), micro_batches);
    EXPECT_NEAR(cut.training[0], whole.training[0], kRounding);
    EXPECT_THAT(cut.training, ::testing::Pointwise(::testing::DoubleNear(kAfterUpdates), whole.training));
    EXPECT_THAT(cut.validation, ::testing::Pointwise(::testing::DoubleNear(kAfterUpdates), whole.validation));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, BatchCutsTest, ::testing::Values("gpt", "bert", "mlp"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tandem
