// A kernel that takes no more calls into its ring, as for want of memory: what is written and read is the same, by
// calls of the older kind.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <liburing.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "runtime/executors/disk_file.hpp"

namespace {
std::atomic<std::int64_t> submits{0}, first_refused{-1};
std::atomic<int> refusal{EBUSY};
}  // namespace

// In place of the library's.
extern "C" int io_uring_submit(io_uring* ring) {
  static const auto kReal = reinterpret_cast<int (*)(io_uring*)>(dlsym(RTLD_NEXT, "io_uring_submit"));
  const std::int64_t call = submits++, first = first_refused;
  return first >= 0 && call >= first ? -refusal : kReal(ring);
}

namespace tandem {
namespace {

TEST(RingTest, AKernelThatTakesNoMoreCallsIsDoneWithout) {
  io_uring ring{};
  if (io_uring_queue_init(4, &ring, 0) != 0) GTEST_SKIP() << "the kernel has no rings";
  io_uring_queue_exit(&ring);
  constexpr std::int64_t kBlock = 8192, kBytes = 10 * kBlock + 700;
  std::vector<std::byte> written(static_cast<std::size_t>(kBytes));
  for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (const int error : {EBUSY, EAGAIN, ENOMEM})
    for (std::int64_t first = 0; first < 24; ++first) {
      DiskOptions options;
      options.directory = ::testing::TempDir();
      options.bytes = 2 * kBytes;
      options.block_bytes = kBlock;
      options.in_flight = 4;
      const DiskFile file(options);
      DiskChannel channel(file);
      refusal = error;
      submits = 0;
      first_refused = first;
      std::vector<std::byte> read(written.size());
      channel.write(0, written.data(), kBytes);
      channel.read(0, read.data(), kBytes);
      first_refused = -1;
      ASSERT_GT(submits, 0) << "the library's own call was made";
      ASSERT_TRUE(read == written) << std::strerror(error) << " from call " << first;
    }
}

}  // namespace
}  // namespace tandem
