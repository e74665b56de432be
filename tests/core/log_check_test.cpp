// Logs as data: what no run can have recorded is refused with its line, before a scheduler takes it for true.
#include "core/scheduler/log_check.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "core/base/errors.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

struct Case {
  const char* name;
  const char* records;   // from line 10 on
  const char* expected;  // "": accepted
  const char* mode = "simulated";
  const char* rank = "0 2";
};

constexpr const char* kBoth =
    "b 0\nr 0 0 0 0 -1 -1 -1 0 0 0 0\nr 0 1 0 1 -1 -1 -1 0 0 0 0\nr 1 0 0 0 -1 -1 -1 0 0 0 0\n";

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"a run", "b 5\ne 0 0 0 0 1 2\ne 1 0 0 0 1 2\nr 0 2 1 2 -1 -1 -1 0 0 0 1 1\nb 6\ne 0 1 0 0 2 3\ne 0 2 0 0 3 4\n",
       ""},
      {"a rank too far", "b 5\ne 2 0 0 0 1 2\n", "15:1: log: rank 2 of 2; allowed: 0 to 1"},
      {"the largest rank", "b 5\ne 2147483647 0 0 0 1 2\n", "15:1: log: rank 2147483647 of 2; allowed: 0 to 1"},
      {"no such command", "b 5\ne 0 2 0 0 1 2\n",
       "15:1: log: an event of command 2, which was not issued; allowed: 0 to 1"},
      {"twice", "b 5\ne 0 0 0 0 1 2\ne 0 0 0 0 1 2\n",
       "16:1: log: an event of command 0, which has had one or wants none; allowed: one for each r and c"},
      {"a lane out of order", "b 5\ne 0 1 0 0 1 2\n",
       "15:1: log: an event of command 1, before one of command 0 of the same lane; allowed: that order the other way "
       "round"},
      {"a wait out of order", "b 5\nr 0 2 1 2 -1 -1 -1 0 0 0 1 1\nb 6\ne 0 2 0 0 1 2\n",
       "17:1: log: an event of command 2, before one of command 1 for which it waits; allowed: that order the other "
       "way "
       "round"},
      {"a release has no event", "b 5\nf 0 2 0 0 0 0 0 0 0\nb 6\ne 0 2 0 0 1 2\n",
       "17:1: log: an event of command 2, which has had one or wants none; allowed: one for each r and c"},
      {"a command left out", "b 5\nr 0 3 0 0 -1 -1 -1 0 0 0 0\n", "15:1: log: command 3 of rank 0; allowed: 2"},
      {"a wait for what comes", "b 5\nr 0 2 0 0 -1 -1 -1 0 0 0 1 2\n",
       "15:1: log: command 2 waits for command 2; allowed: ids that are smaller"},
      {"back in time", "b 5\nb 4\n", "15:1: log: is observed at 4 ns, before the batch above it; allowed: 5 or more"},
      {"no time", "b -1\n", "14:1: log: the time -1 ns; allowed: 0 to 9007199254740992"},
      {"an endless event", "b 5\ne 0 0 0 0 1 9223372036854775807\n",
       "15:1: log: the time 9223372036854775807 ns; allowed: 0 to 9007199254740992"},
      {"an end before its begin", "b 5\ne 0 0 0 0 2 1\n",
       "15:1: log: an event that ends before it begins; allowed: an end that is not earlier"},
      {"another's rank", "", "11:1: log: rank 0 in the log of rank 1; allowed: 1", "measured", "1 2"},
      {"a mode that is none", "", "2:1: log: mode is neither of the two; allowed: simulated, measured", "guessed"},
      {"a rank beyond the ranks", "", "5:1: log: rank 2 of 2; allowed: 0 to 1", "measured", "2 2"},
      {"ranks without commands", "",
       "13:1: log: the first batch has commands of 2 of its 2147483647 ranks; allowed: commands of each", "simulated",
       "0 2147483647"},
  };
  return kCases;
}

TEST(LogCheck, WhatNoRunRecordsIsRefusedWithItsLine) {
  for (const Case& hostile : cases()) {
    std::istringstream in("tandem-log 1\nmode " + std::string(hostile.mode) + "\nbuild x\nseed 0\nrank " +
                          hostile.rank + "\nscenario 1\na\nprofile 1\na\n" + kBoth + hostile.records);
    std::string message;
    try {
      check_log(read_log(in, "a.log"), "a.log");
    } catch (const ConfigError& error) {
      message = error.what();
    }
    EXPECT_EQ(message, *hostile.expected == '\0' ? "" : "a.log:" + std::string(hostile.expected)) << hostile.name;
  }
}

// In any order that lanes and waits allow, whole or cut short, and where a command fails.
TEST(LogCheck, WhatRunsRecordIsAccepted) {
  const Scenario scenario = testing::gpt_scenario("on_demand", std::int64_t{1} << 30);
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    for (const CommandId fail : {kNoCommand, CommandId{40}}) {
      NullExecutor::Options options;
      options.seed = seed;
      options.fail = fail;
      const testing::NullRun run = testing::run_null(scenario, options);
      std::ostringstream out;
      write_log(out, {1, "simulated", "a", "a", "x"}, run.log);
      const std::string text = out.str();
      for (const std::size_t end : {text.size(), text.rfind('\n', text.size() / 2) + 1}) {
        std::istringstream in(text.substr(0, end));
        EXPECT_NO_THROW(check_log(read_log(in, "a.log"), "a.log")) << seed << ' ' << fail << ' ' << end;
      }
    }
}

}  // namespace
}  // namespace tandem
