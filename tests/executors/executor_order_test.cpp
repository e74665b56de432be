// Random command streams: lanes are FIFO, one at a time, and nothing starts before what it waits for has finished.
#include "tests/common/random_commands.hpp"
#include "tests/executors/executor_fixture.hpp"
#include "tests/executors/thread_device.hpp"

namespace tandem {
namespace {

test::RandomStreamOptions stream_options(std::uint64_t seed) {
  test::RandomStreamOptions options;
  options.seed = seed;
  options.run_lanes = {Engine::Compute, Engine::CpuCompute, Engine::CpuOptimizer, Engine::Loader};
  options.copy_lanes = {Engine::H2D,      Engine::D2H,      Engine::H2DSmall,
                        Engine::D2HSmall, Engine::DiskRead, Engine::DiskWrite};
#ifdef __SANITIZE_THREAD__
  options.copy_bytes = 0;  // streams are drawn without regard to what they overwrite
#endif
  return options;
}

class ExecutorOrderTest : public ExecutorTest, public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  void expect_order();
};

void ExecutorOrderTest::expect_order() {
  const test::RandomStream stream = test::random_stream(stream_options(GetParam()));
  graph_ = stream.graphs[0];
  start();
  const std::vector<Command>& commands = stream.commands[0];
  std::vector<Event> events;
  constexpr std::size_t kAtOnce = 100;  // the rest is submitted while earlier commands run
  for (std::size_t i = 0; i < commands.size(); i += kAtOnce) {
    executor_->submit(std::span(commands).subspan(i, std::min(kAtOnce, commands.size() - i)));
    const EventBatch batch = executor_->wait(kNever);
    events.insert(events.end(), batch.events.begin(), batch.events.end());
  }
  for (auto& [id, event] : drain()) events.push_back(event);
  EXPECT_EQ(test::order_violation(stream, events), "");
  for (const Event& event : events) EXPECT_EQ(event.outcome, Outcome::Finished) << event.error;
}

TEST_P(ExecutorOrderTest, LanesAndWaitsAreKept) { expect_order(); }

TEST_P(ExecutorOrderTest, SoTheyAreByADeviceWithStreams) {
  options_.device = std::make_shared<testing::ThreadDevice>();
  expect_order();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExecutorOrderTest, ::testing::Range<std::uint64_t>(0, 20));

}  // namespace
}  // namespace tandem
