// A CPU executor over a hand-made graph of trivial ops, for the tests of runtime/executors.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "runtime/data.hpp"
#include "runtime/executors/live_executor.hpp"

namespace tandem {

// Searches the bodies of executor_fixture.cpp: test.fill, test.increment, test.allocate, test.leak, test.fail,
// test.sum.
const BodyEntry& find_test_body(const Work& work);
// True if what test.leak kept is known as memory that must not reach the heap.
bool take_leaked_back();

class NoData final : public DataSource {
 public:
  void next_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t*, std::int64_t*) const override {}
  void masked_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t, std::int64_t*,
                          std::int64_t*) const override {}
  void image_batch(BatchKey, std::int64_t, std::int64_t, float*, std::int64_t*) const override {}
};

class ExecutorTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kValueBytes = 4096;

  ExecutorTest();
  // `options` with what tests share: arenas of 1 MiB a tier and the bodies above.
  void start(LiveExecutorOptions options);
  void start() { start(options_); }

  // Appends an op on `engine` that reads `reads` and writes one new value of `bytes`; returns the value.
  ValueId append(const std::string& body, std::vector<ValueId> reads = {}, std::vector<std::int64_t> sizes = {},
                 std::int64_t workspace_bytes = 0, bool divisible = false, std::int64_t bytes = kValueBytes);
  Command run(ValueId produces, Engine engine, const std::vector<std::int64_t>& offsets,
              const std::vector<CommandId>& waits = {});
  Command copy(Engine engine, Place source, Place target, std::int64_t bytes, const std::vector<CommandId>& waits = {});
  Command release(Place source, std::int64_t bytes, const std::vector<CommandId>& waits);
  // All events until nothing is in flight, by command.
  std::map<CommandId, Event> drain();
  std::vector<std::uint8_t> bytes_at(Place place, std::int64_t bytes = kValueBytes);

  LiveExecutorOptions options_;
  Graph graph_;
  Scenario scenario_;
  NoData data_;
  std::unique_ptr<LiveExecutor> executor_;
  CommandId next_id_ = 0;

 private:
  Command command(CommandKind kind, Engine engine, const std::vector<CommandId>& waits);
};

}  // namespace tandem
