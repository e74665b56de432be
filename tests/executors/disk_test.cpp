// The disk tier: what is written is read, neighbours stay, and every way in which a call can fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.hpp"
#include "runtime/executors/arena.hpp"
#include "runtime/executors/disk_file.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kFileBytes = 1 << 20;
constexpr std::int64_t kBlockBytes = 64 << 10;

DiskOptions small_options() {
  DiskOptions options;
  options.directory = ::testing::TempDir();
  options.bytes = kFileBytes;
  options.block_bytes = kBlockBytes;
  options.in_flight = 4;
  return options;
}

class DiskTest : public ::testing::Test {
 protected:
  DiskTest() : memory_("host_pinned", kFileBytes, false) {
    for (std::int64_t i = 0; i < kFileBytes; ++i) *memory_.at(i, 1) = static_cast<std::byte>(i % 251);
  }
  std::byte* bytes() { return memory_.at(0, kFileBytes); }

  Arena memory_;
};

TEST_F(DiskTest, WhatIsWrittenIsReadAtAnyOffsetAndLength) {
  const DiskFile file(small_options());
  DiskChannel writer(file), reader(file);
  std::vector<std::byte> expected(kFileBytes), got(kFileBytes);
  std::mt19937 random(1);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  for (int i = 0; i < 60; ++i) {
    const std::int64_t step = i % 2 == 0 ? 4096 : 1;  // aligned ones go direct
    const std::int64_t offset = below(kFileBytes / step) * step;
    const std::int64_t size = 1 + below(std::min<std::int64_t>(kFileBytes - offset, 200'000));
    const std::int64_t from = below((kFileBytes - size) / step + 1) * step;
    writer.write(offset, bytes() + from, size);
    std::memcpy(expected.data() + offset, bytes() + from, static_cast<std::size_t>(size));
    reader.read(offset, got.data() + offset, size);
    ASSERT_EQ(std::memcmp(got.data() + offset, expected.data() + offset, static_cast<std::size_t>(size)), 0) << i;
  }
  reader.read(0, got.data(), kFileBytes);
  EXPECT_EQ(got, expected) << "a write changed bytes beside its range";
}

TEST_F(DiskTest, AReadLeavesTheMemoryBesideItsTargetAlone) {
  const DiskFile file(small_options());
  DiskChannel channel(file);
  channel.read(0, bytes() + 4096, 100);
  EXPECT_EQ(bytes()[4096], std::byte{0});
  EXPECT_EQ(bytes()[4096 + 100], static_cast<std::byte>((4096 + 100) % 251));
}

TEST_F(DiskTest, TheScratchFileHasNoName) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "tandem_disk_test";
  std::filesystem::create_directories(folder);
  DiskOptions options = small_options();
  options.directory = folder.string();
  const DiskFile file(options);
  DiskChannel(file).write(0, bytes(), 4096);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

// What is in the file behind the channel's back: one bit of it turned over.
void flip_a_bit(const DiskFile& file, std::int64_t offset) {
  const std::int64_t page = offset / 4096 * 4096;
  const std::unique_ptr<std::byte, void (*)(void*)> memory(static_cast<std::byte*>(std::aligned_alloc(4096, 4096)),
                                                           &std::free);
  ASSERT_EQ(pread(file.descriptor(), memory.get(), 4096, page), 4096);
  memory.get()[offset - page] ^= std::byte{4};
  ASSERT_EQ(pwrite(file.descriptor(), memory.get(), 4096, page), 4096);
}

TEST_F(DiskTest, AFlippedBitIsSeenBeforeItIsUsed) {
  constexpr std::int64_t kBytes = 6 * kBlockBytes + 1000;
  for (const std::int64_t at : {std::int64_t{0}, 3 * kBlockBytes + 5000, kBytes - 1}) {
    const DiskFile file(small_options());
    DiskChannel channel(file);
    channel.write(0, bytes(), kBytes);
    flip_a_bit(file, at);
    std::vector<std::byte> got(static_cast<std::size_t>(kBytes));
    try {
      channel.read(0, got.data(), kBytes);
      ADD_FAILURE() << at;
    } catch (const DeviceError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("the page at offset " + std::to_string(at / 4096 * 4096)));
      EXPECT_THAT(error.what(), ::testing::HasSubstr("check the drive"));
    }
    if (at >= 6 * kBlockBytes) continue;  // writing a part of a page brings its other bytes along, which are wrong
    channel.write(0, bytes(), kBytes);
    channel.read(0, got.data(), kBytes);
    EXPECT_EQ(std::memcmp(got.data(), bytes(), got.size()), 0);
  }
}

// One writes the first half of a page over and over, the other reads the second.
TEST_F(DiskTest, NeighboursInOnePageDoNotDisturbEachOther) {
  const DiskFile file(small_options());
  DiskChannel writer(file), reader(file);
  writer.write(0, bytes(), 4096);
  std::thread other([&] {
    for (int i = 0; i < 300; ++i) writer.write(0, bytes() + 4096 * (1 + i % 7), 2048);
  });
  std::vector<std::byte> got(2048);
  for (int i = 0; i < 300; ++i) {
    reader.read(2048, got.data(), 2048);
    ASSERT_EQ(std::memcmp(got.data(), bytes() + 2048, got.size()), 0);
  }
  other.join();
}

TEST_F(DiskTest, AMissingFolderIsADeviceErrorThatNamesIt) {
  DiskOptions options = small_options();
  options.directory = "/nowhere/at/all";
  try {
    const DiskFile file(options);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("/nowhere/at/all"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("TANDEM_SCRATCH"));
  }
}

// The k-th call of a transfer fails, for every k: six whole blocks, and a read and a write of the end.
constexpr int kCalls = 8;
class DiskFaultTest : public DiskTest, public ::testing::WithParamInterface<int> {
 protected:
  static constexpr std::int64_t kBytes = 6 * kBlockBytes + 1000;  // six whole blocks and an end through the bounce

  // A file whose call GetParam() has `result`.
  DiskFile file_with(std::int32_t result) {
    DiskOptions options = small_options();
    options.fault = [result](std::int64_t call, std::int32_t truth) { return call == GetParam() ? result : truth; };
    return DiskFile(options);
  }
  void expect_round_trip(const DiskFile& file) {
    DiskChannel writer(file);
    writer.write(0, bytes(), kBytes);
    std::vector<std::byte> got(static_cast<std::size_t>(kBytes));
    DiskChannel reader(file);
    reader.read(0, got.data(), kBytes);
    EXPECT_EQ(std::memcmp(got.data(), bytes(), got.size()), 0);
  }
  std::string failure_of(const DiskFile& file) {
    DiskChannel channel(file);
    try {
      channel.write(0, bytes(), kBytes);
    } catch (const DeviceError& error) {
      channel.write(0, bytes(), kBlockBytes);  // nothing was left in flight: the channel still works
      return error.what();
    }
    return "no failure";
  }
};

TEST_P(DiskFaultTest, AnInterruptedCallIsMadeAgain) { expect_round_trip(file_with(-EINTR)); }
TEST_P(DiskFaultTest, AShortTransferGoesOnWhereItEnded) { expect_round_trip(file_with(4096)); }
TEST_P(DiskFaultTest, ATransferThatEndsInsideADiskBlockGoesOnAtItsBorder) { expect_round_trip(file_with(700)); }
TEST_P(DiskFaultTest, ACallThatMovedNothingIsMadeAgain) { expect_round_trip(file_with(0)); }
TEST_P(DiskFaultTest, AFullDiskSaysSo) {
  const std::string failure = failure_of(file_with(-ENOSPC));
  EXPECT_THAT(failure, ::testing::HasSubstr("No space left"));
  EXPECT_THAT(failure, ::testing::HasSubstr("free space there"));
}
TEST_P(DiskFaultTest, ABrokenDriveSaysSo) {
  EXPECT_THAT(failure_of(file_with(-EIO)), ::testing::HasSubstr("check the drive"));
}

INSTANTIATE_TEST_SUITE_P(EveryCall, DiskFaultTest, ::testing::Range(0, kCalls));

TEST_F(DiskTest, ADriveThatNeverMovesAnythingIsGivenUp) {
  DiskOptions options = small_options();
  options.fault = [](std::int64_t, std::int32_t) { return 0; };
  const DiskFile file(options);
  EXPECT_THROW(DiskChannel(file).write(0, bytes(), 4096), DeviceError);
}

}  // namespace
}  // namespace tandem
