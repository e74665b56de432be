// The null executor keeps lanes and waits on the random streams that every executor is tested with.
#include "core/scheduler/null_executor.hpp"

#include <gtest/gtest.h>

#include "tests/common/random_commands.hpp"

namespace tandem {
namespace {

TEST(NullExecutor, LanesAndWaitsAreKept) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    test::RandomStreamOptions stream_options;
    stream_options.seed = seed;
    const test::RandomStream stream = test::random_stream(stream_options);
    NullExecutor::Options options;
    options.seed = seed;
    NullExecutor executor(options);
    executor.submit(stream.commands[0]);
    std::vector<Event> events;
    while (executor.in_flight()) {
      const EventBatch batch = executor.wait(kNever);
      events.insert(events.end(), batch.events.begin(), batch.events.end());
    }
    EXPECT_EQ(test::order_violation(stream, events), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace tandem
