// What storage may give back of a checkpoint that was whole: a flipped bit, a file cut short, the file of an earlier
// save. All of it is seen before any of it is used.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "cli/cli.hpp"
#include "tests/file_faults/common/fault_run.hpp"
#include "tests/file_faults/small_run.hpp"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;

class DamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = new_folder();
    fs::create_directory(root_ + "/tables");
    const SmallRun run(root_);
    ASSERT_EQ(run_with(root_, {}, [&] { return run(); }).code, kDone);
    for (const auto& entry : fs::directory_iterator(run.directory() + "/step-00000004")) files_.push_back(entry.path());
    ASSERT_EQ(files_.size(), 4U);
    ASSERT_TRUE(is_seen_as(2, 0));
  }
  void TearDown() override { fs::remove_all(root_); }

  // Of the two checkpoints that are kept.
  bool is_seen_as(std::size_t whole, std::size_t damaged) const {
    const Found found = checkpoints_in(SmallRun(root_).directory());
    return found.whole.size() == whole && found.damaged.size() == damaged;
  }
  // That a run refuses it, too, and names the whole one before it.
  void expect_refused() const {
    const SmallRun run(root_);
    const Ended refused = run_with(root_, {}, [&] { return run(SmallRun::kSteps + 1); });
    EXPECT_EQ(refused.code, kBadInput);
    EXPECT_NE(refused.output.find("is damaged"), std::string::npos) << refused.output;
    EXPECT_NE(refused.output.find("--resume " + run.directory() + "/step-00000003"), std::string::npos)
        << refused.output;
  }

  std::string root_;
  std::vector<fs::path> files_;
};

void put(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

TEST_F(DamageTest, AFlippedBitInAnyByteOfACheckpointIsSeen) {
  std::mt19937 seeded(5);
  std::size_t flips = 0;
  const std::size_t step = std::getenv("TANDEM_EVERY_FAULT") != nullptr ? 1 : 4;
  for (const fs::path& file : files_) {
    const std::string whole = bytes_of(file);
    for (std::size_t at = 0; at < whole.size(); at += step, ++flips) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << seeded() % 8));
      put(file, flipped);
      // Between the manifest's tokens is white space, which a flip may leave what it is, or make a tab.
      const bool is_space =
          file.filename() == "manifest.json" && std::isspace(static_cast<unsigned char>(whole[at])) != 0;
      ASSERT_TRUE(is_seen_as(1, 1) || is_space) << file << ", byte " << at;
    }
    put(file, whole);
  }
  EXPECT_GT(flips, 4'000U);
  std::printf("%zu flipped bits\n", flips);
}

TEST_F(DamageTest, AFileThatIsCutShortAnywhereIsSeen) {
  for (const fs::path& file : files_) {
    const std::string whole = bytes_of(file);
    for (std::size_t length = 0; length + 1 < whole.size(); length += 7) {  // the manifest may lack its last line end
      put(file, whole.substr(0, length));
      ASSERT_TRUE(is_seen_as(1, 1)) << file << " of " << length << " bytes";
    }
    put(file, whole);
  }
  put(files_.front(), "");
  expect_refused();
}

TEST_F(DamageTest, AFileOfAnEarlierSaveOrItsFirstHalfIsSeen) {
  for (const fs::path& file : files_) {
    if (file.filename() == "manifest.json") continue;
    const std::string whole = bytes_of(file);
    const std::string stale = bytes_of(file.parent_path().parent_path() / "step-00000003" / file.filename());
    ASSERT_EQ(stale.size(), whole.size());
    put(file, stale);
    EXPECT_TRUE(is_seen_as(1, 1)) << file;
    expect_refused();
    put(file, whole.substr(0, whole.size() / 2) + stale.substr(whole.size() / 2));
    EXPECT_TRUE(is_seen_as(1, 1)) << file;
    expect_refused();
    put(file, whole);
  }
  EXPECT_TRUE(is_seen_as(2, 0));
}

}  // namespace
}  // namespace tandem::testing
