// Tests that must not pass, disabled: tests/scripts/each_alone.sh runs them to see that tests/common/test_main.cpp
// finds each of them, goes on after it, and keeps tests apart.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace {

int in_this_process = 0;

TEST(TestMain, DISABLED_Fails) { EXPECT_EQ(1, 2) << "as it must"; }
TEST(TestMain, DISABLED_Crashes) { std::abort(); }
TEST(TestMain, DISABLED_Exits) { _exit(3); }
TEST(TestMain, DISABLED_ExitsAsIfItHadPassed) { _exit(0); }
TEST(TestMain, DISABLED_Hangs) {
  for (;;) pause();
}
TEST(TestMain, DISABLED_IsSkipped) { GTEST_SKIP() << "as it must be"; }
TEST(TestMain, SeesNoOtherTestsVariables) { EXPECT_EQ(++in_this_process, 1); }
TEST(TestMain, SeesNoOtherTestsVariablesEither) { EXPECT_EQ(++in_this_process, 1); }

}  // namespace
