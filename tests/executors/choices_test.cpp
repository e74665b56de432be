// All that ops choose is told, in order, on the host and on a device whose place the next op takes at once.
#include <gmock/gmock.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/executors/executor_fixture.hpp"
#include "tests/executors/thread_device.hpp"

namespace tandem {
namespace {

class ChoicesTest : public ExecutorTest {
 protected:
  static constexpr std::int64_t kTexts = 2, kBytes = kTexts * 8;
  using Told = std::pair<std::int32_t, std::vector<std::int64_t>>;

  ChoicesTest() {
    scenario_.workload.batch = kTexts;
    options_.chosen = [this](std::int32_t step, std::int32_t, std::span<const std::int64_t> tokens) {
      const std::lock_guard lock(mutex_);
      told_.emplace_back(step, std::vector(tokens.begin(), tokens.end()));
    };
  }
  ValueId choose(std::int32_t step, std::int64_t byte, DType type = DType::I64) {
    Tensor tensor;
    tensor.name = "choice";
    tensor.bytes = kBytes;
    tensor.type = type;
    Op op;
    op.label = graph_.intern("choice");
    op.work = graph_.add_work({.body = "test.fill", .sizes = {byte}, .kernels = {}});
    op.engines = engine_bit(Engine::Compute) | engine_bit(Engine::CpuOptimizer);
    op.has_result = true;
    op.step = step;
    const ValueId value = graph_.new_version(graph_.add_tensor(tensor));
    op.writes.push_back({value, kNone});
    graph_.append(op);
    return value;
  }
  void expect_told(Engine engine) {
    constexpr std::int32_t kSteps = 100;  // more than there are places for
    std::vector<ValueId> values;
    for (std::int32_t step = 0; step < kSteps; ++step) values.push_back(choose(step, step));
    const ValueId number = choose(kSteps, 1, DType::F32);
    start();
    std::vector<Command> commands;
    for (const ValueId value : values) commands.push_back(run(value, engine, {0, -1}));
    commands.push_back(run(number, engine, {0, -1}));
    executor_->submit(commands);
    for (const auto& [id, event] : drain()) EXPECT_EQ(event.outcome, Outcome::Finished) << id << event.error;
    ASSERT_EQ(told_.size(), values.size()) << "a result that is a number is no choice";
    for (std::int32_t step = 0; step < kSteps; ++step) {
      std::int64_t token = 0;
      for (int byte = 0; byte < 8; ++byte) token = token << 8 | step;
      EXPECT_EQ(told_[static_cast<std::size_t>(step)], Told(step, {token, token}));
    }
  }
  std::mutex mutex_;
  std::vector<Told> told_;
};

TEST_F(ChoicesTest, AreToldByWorkers) { expect_told(Engine::CpuOptimizer); }

TEST_F(ChoicesTest, AreToldFromADevice) {
  options_.device = std::make_shared<testing::ThreadDevice>();
  expect_told(Engine::Compute);
}

}  // namespace
}  // namespace tandem
