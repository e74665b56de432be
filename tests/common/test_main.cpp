// Main of all test programs. By itself GoogleTest's. With --each_alone=SECONDS every test of the filter runs in a
// process of its own, forked from this one: as apart as separate programs (SimGrid allows one engine a process, a crash
// ends one test), but libraries are loaded once. No thread runs yet when a test is forked: LibTorch starts its own at
// first use.
#include <fnmatch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/common/sanitized.hpp"

namespace {

constexpr const char* kFlag = "--each_alone=";

// What GoogleTest prints of a test, without what it prints around each run and each suite.
class OneTest final : public ::testing::EmptyTestEventListener {
 public:
  explicit OneTest(::testing::TestEventListener* printer) : printer_(printer) {}
  void OnTestPartResult(const ::testing::TestPartResult& result) override { printer_->OnTestPartResult(result); }
  void OnTestEnd(const ::testing::TestInfo& test) override { printer_->OnTestEnd(test); }

 private:
  std::unique_ptr<::testing::TestEventListener> printer_;
};

// One of the patterns, which ':' divides.
bool matches_one(const std::string& name, const std::string& patterns) {
  for (std::size_t begin = 0; begin <= patterns.size();) {
    const std::size_t end = std::min(patterns.find(':', begin), patterns.size());
    if (fnmatch(patterns.substr(begin, end - begin).c_str(), name.c_str(), 0) == 0) return true;
    begin = end + 1;
  }
  return false;
}

// GoogleTest applies its filter only when it runs: patterns that may match, then after '-' those that must not.
bool selected(const std::string& name, const std::string& filter) {
  const std::size_t minus = filter.find('-');
  const std::string wanted = filter.substr(0, minus);
  if (!matches_one(name, wanted.empty() ? "*" : wanted)) return false;
  return minus == std::string::npos || !matches_one(name, filter.substr(minus + 1));
}

std::vector<std::string> selected_tests() {
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  const std::string filter = GTEST_FLAG_GET(filter);
  std::vector<std::string> names;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string name = std::string(suite.name()) + "." + suite.GetTestInfo(j)->name();
      const bool disabled = matches_one(name, "DISABLED_*:*/DISABLED_*:*.DISABLED_*");
      if (selected(name, filter) && (!disabled || GTEST_FLAG_GET(also_run_disabled_tests))) names.push_back(name);
    }
  }
  return names;
}

// Whether the child came to the end of its test: one that calls exit(0) midway has passed nothing. Both see it.
bool& came_to_its_end() {
  static bool* const shared =
      static_cast<bool*>(mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *shared;
}

[[noreturn]] void run_in_this_process(const std::string& name, unsigned seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // where ctest ends this program's parent
  alarm(seconds);
  GTEST_FLAG_SET(filter, name);
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  listeners.Append(new OneTest(listeners.Release(listeners.default_result_printer())));
  const int status = RUN_ALL_TESTS();
  came_to_its_end() = true;
  if (tandem::testing::kSanitized) std::exit(status);  // leaks are looked for at the exit
  std::fflush(nullptr);
  _exit(status);  // LibTorch's destructors take longer than most tests
}

// Forks, waits, and says how it ended where the test could not say so itself.
bool passes_alone(const std::string& name, unsigned seconds) {
  std::fflush(nullptr);
  came_to_its_end() = false;
  const pid_t child = fork();
  if (child == 0) run_in_this_process(name, seconds);
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    std::perror("each_alone");
    return false;
  }
  if (WIFSIGNALED(status))
    std::printf("[  FAILED  ] %s: ended by signal %d, %s%s\n", name.c_str(), WTERMSIG(status),
                strsignal(WTERMSIG(status)), WTERMSIG(status) == SIGALRM ? ": it took too long" : "");
  else if (WEXITSTATUS(status) > 1 || !came_to_its_end())
    std::printf("[  FAILED  ] %s: ended with exit code %d\n", name.c_str(), WEXITSTATUS(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 && came_to_its_end();
}

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  const int number = text != nullptr ? std::atoi(text) : otherwise;
  unsetenv(variable);  // a forked test is no shard
  return number;
}

// GoogleTest's variables, which share out the tests of a long suite.
std::vector<std::string> shard_of(const std::vector<std::string>& names) {
  const auto shards = static_cast<std::size_t>(std::max(number_from("GTEST_TOTAL_SHARDS", 1), 1));
  const auto shard = static_cast<std::size_t>(number_from("GTEST_SHARD_INDEX", 0));
  std::vector<std::string> own;
  for (std::size_t i = shard; i < names.size(); i += shards) own.push_back(names[i]);
  return own;
}

int run_each_alone(const char* program, unsigned seconds) {
  const std::vector<std::string> names = shard_of(selected_tests());
  std::vector<std::string> failed;
  for (const std::string& name : names)
    if (!passes_alone(name, seconds)) failed.push_back(name);
  std::printf("%zu of %zu tests passed\n", names.size() - failed.size(), names.size());
  for (const std::string& name : failed)
    std::printf("failed: %s\n alone: %s --gtest_filter='%s'\n", name.c_str(), program, name.c_str());
  return failed.empty() && !names.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  if (argc == 2 && std::strncmp(argv[1], kFlag, std::strlen(kFlag)) == 0)
    return run_each_alone(argv[0], static_cast<unsigned>(std::atoi(argv[1] + std::strlen(kFlag))));
  return RUN_ALL_TESTS();
}
