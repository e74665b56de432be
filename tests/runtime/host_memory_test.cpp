// The memory limit of control groups, from folders as the kernel lays them out.
#include "runtime/host_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tandem {
namespace {

namespace fs = std::filesystem;

class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemoryTest() : root_(fs::path(::testing::TempDir()) / "host_memory_test") { fs::remove_all(root_); }
  ~HostMemoryTest() override { fs::remove_all(root_); }
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::int64_t limit() const { return cgroup_limit_bytes(root_ / "groups", root_ / "mount"); }
  fs::path root_;
};

TEST_F(HostMemoryTest, VersionTwoTakesTheTightestGroupAbove) {
  write("groups", "0::/user/job\n");
  write("mount/user/job/memory.max", "max\n");
  write("mount/user/memory.max", "68719476736\n");
  write("mount/memory.max", "137438953472\n");
  EXPECT_EQ(limit(), 68719476736);
}

TEST_F(HostMemoryTest, VersionOneHasAFolderForMemoryAndANumberForNone) {
  write("groups", "8:pids:/\n4:memory:/job\n0::/\n");
  write("mount/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limit(), 0);
  write("mount/memory/memory.limit_in_bytes", "25769803776\n");
  EXPECT_EQ(limit(), 25769803776);
}

TEST_F(HostMemoryTest, WithoutGroupsThereIsNoLimit) {
  EXPECT_EQ(limit(), 0);
  write("groups", "nonsense\n0::/gone\n");
  EXPECT_EQ(limit(), 0);
}

TEST_F(HostMemoryTest, FreeIsWhatTheMachineHasOrTheNearestLimitLeaves) {
  const auto free = [&] { return free_host_bytes(root_ / "groups", root_ / "mount", root_ / "meminfo"); };
  EXPECT_EQ(free(), 0);
  write("meminfo", "MemTotal:       2000 kB\nMemFree:         100 kB\nMemAvailable:   1000 kB\n");
  EXPECT_EQ(free(), 1'024'000);
  write("groups", "0::/user/job\n");
  write("mount/user/job/memory.max", "900000\n");
  write("mount/user/job/memory.current", "200000\n");
  EXPECT_EQ(free(), 700'000);
  write("mount/user/memory.max", "500000\n");
  write("mount/user/memory.current", "600000\n");
  EXPECT_EQ(free(), 0);
}

TEST_F(HostMemoryTest, TheProgramKeepsAShare) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  EXPECT_EQ(for_arenas(64 * kGiB), 60 * kGiB);
  EXPECT_EQ(for_arenas(4 * kGiB), 3 * kGiB);
}

}  // namespace
}  // namespace tandem
