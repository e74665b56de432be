// Arenas: page-aligned, zeroed, hard at both ends.
#include "runtime/executors/arena.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "core/base/errors.hpp"

namespace tandem {
namespace {

TEST(ArenaTest, BytesAreZeroAtAPageBorderAndWritable) {
  constexpr std::int64_t kBytes = 10'000;
  const Arena arena("device", kBytes, false);
  std::byte* begin = arena.at(0, kBytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin) % 4096, 0U);
  EXPECT_EQ(begin[kBytes - 1], std::byte{0});
  begin[kBytes - 1] = std::byte{1};
  EXPECT_EQ(*arena.at(kBytes - 1, 1), std::byte{1});
  EXPECT_TRUE(arena.contains(begin + kBytes - 1));
  EXPECT_FALSE(arena.contains(begin + kBytes));
}

TEST(ArenaTest, WhatIsUntouchedOfATerabyteCostsNothing) {
  // More than any machine that runs the tests has. The thread sanitizer leaves a process 0.5 to 1.5 TiB of addresses,
  // by where the kernel happens to place its libraries.
#ifdef __SANITIZE_THREAD__
  constexpr std::int64_t kBytes = std::int64_t{1} << 38;
#else
  constexpr std::int64_t kBytes = std::int64_t{1} << 40;
#endif
  const Arena arena("host_pinned", kBytes, false);
  *arena.at(kBytes - 1, 1) = std::byte{1};
}

TEST(ArenaTest, WhatCannotBeMappedIsADeviceErrorWithNameAndSize) {
  try {
    const Arena arena("device", std::int64_t{1} << 60, false);
    FAIL() << "an exabyte was mapped";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("device arena: mapping of 1152921504606846976 bytes failed"));
  }
}

TEST(ArenaDeathTest, RangesOutsideAreABug) {
  const Arena arena("device", 4096, false);
  EXPECT_DEATH(static_cast<void>(arena.at(4000, 97)), "CHECK");
  EXPECT_DEATH(static_cast<void>(arena.at(-64, 64)), "CHECK");
}

}  // namespace
}  // namespace tandem
