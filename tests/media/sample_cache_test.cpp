// What is kept is what was put in, or nothing: whatever happened to the folder.
#include "runtime/media/sample_cache.hpp"

#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "core/base/errors.hpp"
#include "tests/media/media_fixture.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::int64_t kPlenty = 1 << 20;
const CacheKey kKey{7, "decoded", "options"};

std::string only_file(const MediaFolder& folder) { return fs::directory_iterator(folder.path())->path().string(); }

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class SampleCacheTest : public ::testing::TestWithParam<bool> {
 protected:
  std::string place() const { return GetParam() ? folder_.path() : ""; }
  MediaFolder folder_;
};

TEST_P(SampleCacheTest, GivesBackWhatWasPutIn) {
  SampleCache cache(kPlenty, place());
  std::string out;
  EXPECT_FALSE(cache.find(kKey, out));
  const std::string bytes("a\0b\n", 4);
  EXPECT_TRUE(cache.put(kKey, bytes));
  ASSERT_TRUE(cache.find(kKey, out));
  EXPECT_EQ(out, bytes);
  for (const CacheKey& other :
       {CacheKey{8, "decoded", "options"}, CacheKey{7, "prepared", "options"}, CacheKey{7, "decoded", "option"}})
    EXPECT_FALSE(cache.find(other, out));
  const CacheCounts counts = cache.counts();
  EXPECT_EQ(counts.hits, 1);
  EXPECT_EQ(counts.misses, 4);
  EXPECT_EQ(counts.entries, 1);
}

TEST_P(SampleCacheTest, TheBudgetIsKept) {
  SampleCache cache(2000, place());
  EXPECT_TRUE(cache.put({1, "s", ""}, std::string(900, 'a')));
  EXPECT_FALSE(cache.put({2, "s", ""}, std::string(1100, 'b')));
  EXPECT_TRUE(cache.put({3, "s", ""}, std::string(800, 'c')));
  EXPECT_TRUE(cache.put({1, "s", ""}, std::string(900, 'a'))) << "it is there";
  EXPECT_EQ(cache.counts().refused, 1);
  EXPECT_EQ(cache.counts().entries, 2);
  EXPECT_LE(cache.counts().bytes, 2000);
}

TEST_P(SampleCacheTest, ManyThreads) {
  SampleCache cache(kPlenty, place());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::int64_t i = 0; i < 100; ++i) {
        const std::string bytes = "sample " + std::to_string(i);
        cache.put({i, "s", ""}, bytes);
        std::string out;
        EXPECT_TRUE(cache.find({i, "s", ""}, out));
        EXPECT_EQ(out, bytes);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.counts().entries, 100);
  EXPECT_EQ(cache.counts().hits, 400);
}

INSTANTIATE_TEST_SUITE_P(Memory, SampleCacheTest, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Folder, SampleCacheTest, ::testing::Values(true));

TEST(SampleCacheFolder, IsFoundAgain) {
  const MediaFolder folder;
  SampleCache(kPlenty, folder.path()).put(kKey, "kept");
  SampleCache cache(kPlenty, folder.path());
  std::string out;
  ASSERT_TRUE(cache.find(kKey, out));
  EXPECT_EQ(out, "kept");
  EXPECT_GT(cache.counts().bytes, 4);
}

// Every way in which a file can be another than was written: it is not used, and its place is free again.
TEST(SampleCacheFolder, DamagedEntriesAreNeverUsed) {
  const MediaFolder folder;
  SampleCache(kPlenty, folder.path()).put(kKey, "what was kept");
  const std::string path = only_file(folder), good = text_of(path);
  std::vector<std::string> bad = {"", good + "x", good.substr(1)};
  for (std::size_t i = 0; i < good.size(); ++i) {
    bad.push_back(good.substr(0, i));
    bad.push_back(good);
    bad.back()[i] = static_cast<char>(bad.back()[i] ^ 1);
  }
  for (const std::string& text : bad) {
    std::ofstream(path, std::ios::binary) << text;
    SampleCache cache(kPlenty, folder.path());
    std::string out;
    ASSERT_FALSE(cache.find(kKey, out));
    EXPECT_EQ(cache.counts().damaged, 1);
    EXPECT_EQ(cache.counts().bytes, 0);
    EXPECT_TRUE(cache.put(kKey, "what was kept"));
    EXPECT_TRUE(cache.find(kKey, out));
    EXPECT_EQ(text_of(path), good);
  }
}

TEST(SampleCacheFolder, AnothersEntryIsNotTaken) {
  const MediaFolder folder;
  SampleCache first(kPlenty, folder.path());
  first.put(kKey, "one");
  const std::string path = only_file(folder), other = text_of(path);
  fs::remove(path);
  SampleCache cache(kPlenty, folder.path());
  cache.put({8, "decoded", "options"}, "two");
  std::ofstream(only_file(folder), std::ios::binary) << other;  // whole, but not of that key
  std::string out;
  EXPECT_FALSE(cache.find({8, "decoded", "options"}, out));
  EXPECT_EQ(cache.counts().damaged, 1);
}

TEST(SampleCacheFolder, RemovedFilesAreRebuilt) {
  const MediaFolder folder;
  SampleCache cache(kPlenty, folder.path());
  cache.put(kKey, "one");
  fs::remove(only_file(folder));
  std::string out;
  EXPECT_FALSE(cache.find(kKey, out));
  EXPECT_TRUE(cache.put(kKey, "one"));
  EXPECT_TRUE(cache.find(kKey, out));
}

// The largest file that this process may write stands for a full disk; "too large" ends the cache just so.
TEST(SampleCacheFolder, AFullDiskEndsTheCacheAndNothingElse) {
  const MediaFolder folder;
  SampleCache cache(kPlenty, folder.path());
  EXPECT_TRUE(cache.put({1, "s", ""}, "small"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  EXPECT_FALSE(cache.put({2, "s", ""}, std::string(5000, 'a')));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(cache.put({3, "s", ""}, "small")) << "it has ended";
  EXPECT_THAT(cache.counts().ended, HasSubstr("File too large"));
  EXPECT_EQ(cache.counts().refused, 2);
  std::string out;
  EXPECT_TRUE(cache.find({1, "s", ""}, out)) << "what is there stays";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1) << "what was half written is gone";
}

TEST(SampleCacheFolder, APlaceThatIsNoneIsRefused) {
  const MediaFolder folder;
  const std::string file = folder.write("file", "x");
  try {
    SampleCache cache(kPlenty, file);
    FAIL() << "a file is no folder";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(file + ": cannot keep samples"));
  }
}

}  // namespace
}  // namespace tandem
