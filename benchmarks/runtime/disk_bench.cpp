// The disk tier's channel beside raw io_uring with direct I/O, on the same file, in the same blocks, as many in flight:
// what checking, retrying and cutting cost. $TANDEM_SCRATCH (or the working folder) is the disk. Run it with
// --benchmark_enable_random_interleaving=true and repetitions: disks change their rates.
#include <benchmark/benchmark.h>
#include <liburing.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/executors/arena.hpp"
#include "runtime/executors/disk_file.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kFileBytes = std::int64_t{512} << 20;
enum class Direction : std::uint8_t { Read, Write };

struct Disk {
  Disk() : file(options()), memory("benchmark", kFileBytes, false) {
    std::memset(memory.at(0, kFileBytes), 1, static_cast<std::size_t>(kFileBytes));
    DiskChannel(file).write(0, memory.at(0, kFileBytes), kFileBytes);  // no holes
  }
  static DiskOptions options() {
    const char* scratch = std::getenv("TANDEM_SCRATCH");
    DiskOptions options;
    options.directory = scratch == nullptr ? "." : scratch;
    options.bytes = kFileBytes;
    return options;
  }
  DiskFile file;
  Arena memory;
};

Disk& disk() {
  static Disk kDisk;
  return kDisk;
}

// Keeps as many blocks in flight as there is room for, and gives up on any error.
class RawRing {
 public:
  explicit RawRing(const DiskFile& file) : file_(file) {
    if (io_uring_queue_init(static_cast<unsigned>(file.options().in_flight), &ring_, 0) != 0) std::abort();
  }
  ~RawRing() { io_uring_queue_exit(&ring_); }
  RawRing(const RawRing&) = delete;
  RawRing& operator=(const RawRing&) = delete;

  void transfer(Direction direction, std::int64_t offset, std::byte* memory, std::int64_t bytes) {
    const std::int64_t end = offset + bytes;
    for (int in_flight = 0; offset < end || in_flight > 0; --in_flight) {
      for (; offset < end && in_flight < file_.options().in_flight; ++in_flight) {
        const std::int64_t block = std::min(file_.options().block_bytes, end - offset);
        submit(direction, offset, memory, block);
        offset += block;
        memory += block;
      }
      reap();
    }
  }

 private:
  void submit(Direction direction, std::int64_t offset, std::byte* memory, std::int64_t bytes) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    const auto prepare = [&](auto* prep) {
      prep(entry, file_.descriptor(), memory, static_cast<unsigned>(bytes), static_cast<std::uint64_t>(offset));
    };
    if (direction == Direction::Read)
      prepare(&io_uring_prep_read);
    else
      prepare(&io_uring_prep_write);
    io_uring_sqe_set_data64(entry, static_cast<std::uint64_t>(bytes));
    if (io_uring_submit(&ring_) != 1) std::abort();
  }
  void reap() {
    io_uring_cqe* entry = nullptr;
    if (io_uring_wait_cqe(&ring_, &entry) != 0 || entry->res != static_cast<int>(io_uring_cqe_get_data64(entry)))
      std::abort();
    io_uring_cqe_seen(&ring_, entry);
  }

  const DiskFile& file_;
  io_uring ring_{};
};

void transfer(DiskChannel& channel, Direction direction, std::int64_t offset, std::byte* memory, std::int64_t bytes) {
  if (direction == Direction::Read)
    channel.read(offset, memory, bytes);
  else
    channel.write(offset, memory, bytes);
}
void transfer(RawRing& ring, Direction direction, std::int64_t offset, std::byte* memory, std::int64_t bytes) {
  ring.transfer(direction, offset, memory, bytes);
}

// The file from its beginning to its end, so many bytes at a time.
template <typename Way>
void walk(benchmark::State& state, Direction direction) {
  Way way(disk().file);
  const std::int64_t bytes = state.range(0) << 20;
  std::int64_t moved = 0;
  for (auto _ : state) {
    for (std::int64_t offset = 0; offset < kFileBytes; offset += bytes)
      transfer(way, direction, offset, disk().memory.at(offset, bytes), bytes);
    moved += kFileBytes;
  }
  state.SetBytesProcessed(moved);
}

void raw_read(benchmark::State& state) { walk<RawRing>(state, Direction::Read); }
void tier_read(benchmark::State& state) { walk<DiskChannel>(state, Direction::Read); }
void raw_write(benchmark::State& state) { walk<RawRing>(state, Direction::Write); }
void tier_write(benchmark::State& state) { walk<DiskChannel>(state, Direction::Write); }

BENCHMARK(raw_read)->Arg(4)->Arg(64)->UseRealTime();
BENCHMARK(tier_read)->Arg(4)->Arg(64)->UseRealTime();
BENCHMARK(raw_write)->Arg(4)->Arg(64)->UseRealTime();
BENCHMARK(tier_write)->Arg(4)->Arg(64)->UseRealTime();

}  // namespace
}  // namespace tandem
