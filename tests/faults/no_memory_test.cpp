// A program that is out of memory, for the reason of its end as well, ends with exit code 4 all the same.
#include <gtest/gtest.h>

#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "tests/common/sanitized.hpp"
#include "tests/faults/allocations.hpp"

namespace tandem {
namespace {

TEST(NoMemory, ForTheReasonEither) {
  if (testing::kSanitized) GTEST_SKIP() << "memory is the sanitizer's";
  char name[] = "tandem";
  char* arguments[] = {name, nullptr};
  const DeviceError device("a lane has failed, for a reason that is longer than a short string may be");
  for (const bool of_memory : {true, false}) {
    std::optional<testing::ArmedAllocations> armed;
    const int code = run_main(1, arguments, [&](int, char**) -> int {
      armed.emplace(testing::FailingAllocations{.first = 0, .all_after = true, .this_thread = true});
      if (of_memory) throw std::bad_alloc();
      throw device;
    });
    armed.reset();
    EXPECT_EQ(code, kDeviceFailure);
  }
}

}  // namespace
}  // namespace tandem
