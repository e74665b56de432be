// A policy that takes over plans for the mix of samples that it begins with; the run keeps the one that it has.
#include <gtest/gtest.h>

#include <utility>

#include "core/run/make_scheduler.hpp"
#include "core/run/succession.hpp"
#include "core/scheduler/driver.hpp"
#include "core/scheduler/null_executor.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

TEST(SuccessorPlan, IsForTheMixThatItBeginsWith) {
  Scenario s = testing::gpt_scenario("balanced", std::int64_t{64} << 20);
  s.workload.mix.points = {{0, {{"image", 0.1}}}, {30, {{"image", 0.9}}}, {50, {{"image", 0.3}}}};
  const Successor next = successor_of(s, 0)({"balanced", {}}, s.machine, 34);
  EXPECT_EQ(next.planned->workload.mix.share("image", 0), 0.9);
  EXPECT_EQ(next.planned->workload.mix.share("image", 15), 0.9);
  EXPECT_EQ(next.planned->workload.mix.share("image", 16), 0.3);
  EXPECT_EQ(next.scenario->workload.mix.share("image", 0), 0.1);
}

// Decides as another one, and keeps what the scenario that it sees says of the first step's mix.
class Looking final : public Policy {
 public:
  Looking(std::unique_ptr<Policy> inner, std::vector<double>& seen) : inner_(std::move(inner)), seen_(seen) {}
  PolicyTraits traits() const override { return inner_->traits(); }
  Tier home(const View& view, TensorId tensor) override { return inner_->home(view, tensor); }
  void decide(const View& view, Decisions& decisions) override {
    seen_.push_back(view.scenario().workload.mix.share("image", 0));
    inner_->decide(view, decisions);
  }

 private:
  std::unique_ptr<Policy> inner_;
  std::vector<double>& seen_;
};

TEST(SuccessorPlan, AndThatMixIsWhatItSees) {
  Scenario s = testing::gpt_scenario("resident", std::int64_t{64} << 20);
  s.steps = 6;
  s.workload.mix.points = {{0, {{"image", 0.1}}}, {3, {{"image", 0.9}}}};
  s.switches = {{3, {"resident", {}}}};
  const CostModel estimate(s.machine);
  const auto scheduler = make_scheduler(s, estimate);
  std::vector<double> seen;
  scheduler->allow_switches([&](const PolicyOptions& policy, const HardwareProfile& machine, std::int32_t step) {
    Successor next = successor_of(s, 0)(policy, machine, step);
    next.policy = std::make_unique<Looking>(std::move(next.policy), seen);
    return next;
  });
  NullExecutor executor({});
  MemoryLog log;
  Scheduler* ranks[] = {scheduler.get()};
  drive(ranks, executor, log);
  ASSERT_FALSE(seen.empty());
  for (const double share : seen) EXPECT_EQ(share, 0.9);
}

}  // namespace
}  // namespace tandem
