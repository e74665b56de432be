#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "runtime/executors/disk_alignment.hpp"
#include "runtime/executors/disk_file.hpp"
#include "runtime/executors/thread_team.hpp"

namespace tandem {
namespace {

// A call that moves nothing this often in a row will not move anything.
constexpr int kMaxStalledRetries = 16;
constexpr std::int64_t kPieceBytes = std::int64_t{256} << 10;  // that one thread compares at a time
constexpr std::int64_t kNoPage = std::numeric_limits<std::int64_t>::max();

// Of 16 cores, a few keep up with any drive; more of them have less left to do when its last block has come.
int comparing_threads() {
  constexpr unsigned kCoresEach = 2, kMost = 8;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency() / kCoresEach, 1U, kMost));
}

void free_bounce(std::byte* bounce) { std::free(bounce); }

std::byte* new_bounce(std::int64_t bytes) {
  void* memory = std::aligned_alloc(kDiskAlignmentBytes, static_cast<std::size_t>(bytes));
  if (memory == nullptr) throw DeviceError("disk tier: no memory for a block of " + std::to_string(bytes) + " bytes");
  return static_cast<std::byte*>(memory);
}

bool aligned(std::int64_t offset, const std::byte* memory) {
  return offset % kDiskAlignmentBytes == 0 && reinterpret_cast<std::uintptr_t>(memory) % kDiskAlignmentBytes == 0;
}

bool worth_retrying(int error) { return error == EINTR || error == EAGAIN; }

}  // namespace

struct DiskChannel::Ring {
  io_uring ring;
  bool ready = false;
  explicit Ring(int entries) : ready(io_uring_queue_init(static_cast<unsigned>(entries), &ring, 0) == 0) {}
  ~Ring() {
    if (ready) io_uring_queue_exit(&ring);
  }
};

DiskChannel::DiskChannel(const DiskFile& file)
    : file_(file),
      bounce_(new_bounce(disk_round_up(file.options().block_bytes)), &free_bounce),
      blocks_(static_cast<std::size_t>(file.options().in_flight)) {
  auto ring = std::make_unique<Ring>(file.options().in_flight);
  if (ring->ready) ring_ = std::move(ring);
  for (std::size_t slot = blocks_.size(); slot > 0; --slot) idle_.push_back(slot - 1);
  finished_.reserve(blocks_.size());
}

DiskChannel::~DiskChannel() = default;

void DiskChannel::read(std::int64_t offset, std::byte* target, std::int64_t bytes) {
  const std::int64_t direct = aligned(offset, target) ? disk_round_down(bytes) : 0;
  transfer(Direction::Read, offset, target, direct);
  through_bounce(Direction::Read, offset + direct, target + direct, bytes - direct);
}

void DiskChannel::write(std::int64_t offset, const std::byte* source, std::int64_t bytes) {
  // Calls take one type of buffer for both directions; a write leaves it as it is.
  auto* memory = const_cast<std::byte*>(source);
  const std::int64_t direct = aligned(offset, source) ? disk_round_down(bytes) : 0;
  transfer(Direction::Write, offset, memory, direct);
  through_bounce(Direction::Write, offset + direct, memory + direct, bytes - direct);
}

// Ends of a range that share a disk block with other bytes: a write must bring those along.
void DiskChannel::through_bounce(Direction direction, std::int64_t offset, std::byte* memory, std::int64_t bytes) {
  const std::int64_t window_bytes = disk_round_up(file_.options().block_bytes);
  while (bytes > 0) {
    const std::int64_t window = disk_round_down(offset);
    const std::int64_t skip = offset - window;
    const std::int64_t count = std::min(bytes, window_bytes - skip);
    const std::int64_t whole = disk_round_up(skip + count);
    const auto size = static_cast<std::size_t>(count);
    // Another thread may be at the other bytes of the first or the last page.
    std::unique_lock<std::mutex> lock(file_.shared_pages_, std::defer_lock);
    if (skip != 0 || skip + count != whole) lock.lock();
    if (direction == Direction::Read || skip + count != whole || skip != 0)
      transfer(Direction::Read, window, bounce_.get(), whole);
    if (direction == Direction::Read) {
      std::memcpy(memory, bounce_.get() + skip, size);
    } else {
      std::memcpy(bounce_.get() + skip, memory, size);
      transfer(Direction::Write, window, bounce_.get(), whole);
    }
    offset += count;
    memory += count;
    bytes -= count;
  }
}

void DiskChannel::transfer(Direction direction, std::int64_t offset, std::byte* memory, std::int64_t bytes) {
  const std::int64_t end = offset + bytes;
  std::exception_ptr failure;
  while (idle_.size() < blocks_.size() || (offset < end && !failure)) {
    while (!idle_.empty() && offset < end && !failure) {
      const std::size_t slot = idle_.back();
      idle_.pop_back();
      blocks_[slot] = {offset, memory, std::min(file_.options().block_bytes, end - offset)};
      offset += blocks_[slot].bytes;
      memory += blocks_[slot].bytes;
      start(direction, slot);
    }
    compare_read(failure);
    do finish(direction, reap(), failure);
    while (idle_.size() < blocks_.size() && has_finished());
  }
  compare_read(failure);
  if (failure) std::rethrow_exception(failure);
}

void DiskChannel::finish(Direction direction, const Completion& done, std::exception_ptr& failure) {
  try {
    if (!failure && advance(direction, blocks_[done.slot], done.result)) return start(direction, done.slot);
  } catch (...) {
    failure = std::current_exception();  // thrown once nothing is in flight: the kernel still fills the buffers
  }
  idle_.push_back(done.slot);
}

void DiskChannel::start(Direction direction, std::size_t slot) {
  const Block& block = blocks_[slot];
  if (!ring_ || !submits_ || !submit(direction, slot)) {
    const int file = file_.descriptor();
    const auto size = static_cast<std::size_t>(block.bytes);
    const ssize_t moved = direction == Direction::Read ? pread(file, block.memory, size, block.offset)
                                                       : pwrite(file, block.memory, size, block.offset);
    finished_.push_back({slot, static_cast<std::int32_t>(moved < 0 ? -errno : moved)});
  }
  if (direction == Direction::Write) file_.sums_.note(block.offset, block.memory, block.bytes);  // while it is written
}

bool DiskChannel::submit(Direction direction, std::size_t slot) {
  const Block& block = blocks_[slot];
  io_uring_sqe* entry = io_uring_get_sqe(&ring_->ring);
  CHECK(entry != nullptr, "more calls in flight than the ring has entries");
  const auto size = static_cast<unsigned>(block.bytes);
  const auto position = static_cast<std::uint64_t>(block.offset);
  if (direction == Direction::Read)
    io_uring_prep_read(entry, file_.descriptor(), block.memory, size, position);
  else
    io_uring_prep_write(entry, file_.descriptor(), block.memory, size, position);
  io_uring_sqe_set_data64(entry, slot);
  int submitted = io_uring_submit(&ring_->ring);
  for (int retries = 0; submitted < 0 && worth_retrying(-submitted) && retries < kMaxStalledRetries; ++retries)
    submitted = io_uring_submit(&ring_->ring);
  submits_ = submitted >= 0;
  return submits_;
}

bool DiskChannel::has_finished() const { return !finished_.empty() || (ring_ && io_uring_cq_ready(&ring_->ring) > 0); }

DiskChannel::Completion DiskChannel::reap() {
  Completion done;
  if (!finished_.empty()) {
    done = finished_.back();
    finished_.pop_back();
  } else {
    io_uring_cqe* entry = nullptr;
    int error = 0;
    while ((error = io_uring_wait_cqe(&ring_->ring, &entry)) < 0 && worth_retrying(-error)) {
    }
    CHECK(error == 0, "io_uring_wait_cqe:", std::strerror(-error));
    done = {static_cast<std::size_t>(io_uring_cqe_get_data64(entry)), entry->res};
    io_uring_cqe_seen(&ring_->ring, entry);
  }
  if (file_.options().fault) done.result = file_.options().fault(calls_, done.result);
  ++calls_;
  return done;
}

bool DiskChannel::advance(Direction direction, Block& block, std::int32_t result) {
  if (result < 0 && !worth_retrying(-result)) fail(direction, block, -result);
  // Direct I/O goes on at a disk block's border: what a short call moved beyond it is moved again.
  const std::int64_t moved = result == block.bytes ? block.bytes : disk_round_down(std::max<std::int64_t>(result, 0));
  if (direction == Direction::Read && moved > 0) read_.push_back({block.offset, block.memory, moved});
  block.stalled = moved > 0 ? 0 : block.stalled + 1;
  if (block.stalled > kMaxStalledRetries) fail(direction, block, result < 0 ? -result : 0);
  block.offset += moved;
  block.memory += moved;
  block.bytes -= moved;
  return block.bytes > 0;
}

// While the drive works on what was started since, if there is more: the last blocks of a short read come at about the
// same time, so that several threads compare them, all that have come at once.
void DiskChannel::compare_read(std::exception_ptr& failure) {
  try {
    if (!failure) compare(read_);
  } catch (...) {
    failure = std::current_exception();
  }
  read_.clear();
}

void DiskChannel::compare(const std::vector<Block>& blocks) const {
  std::vector<Block> pieces;
  for (const Block& block : blocks)
    for (std::int64_t done = 0; done < block.bytes; done += kPieceBytes)
      pieces.push_back({block.offset + done, block.memory + done, std::min(kPieceBytes, block.bytes - done)});
  if (pieces.empty()) return;
  std::atomic<std::int64_t> first_changed = kNoPage;
  ThreadTeam::mine(comparing_threads()).share(static_cast<int>(pieces.size()), [&](int i) {
    const Block& piece = pieces[static_cast<std::size_t>(i)];
    const auto changed = file_.sums_.first_changed(piece.offset, piece.memory, piece.bytes);
    std::int64_t first = first_changed;
    while (changed && *changed < first && !first_changed.compare_exchange_weak(first, *changed)) {
    }
  });
  if (first_changed == kNoPage) return;
  throw DeviceError("disk tier: the page at offset " + std::to_string(first_changed) + " of the scratch file in " +
                    file_.options().directory +
                    " is not as it was written; check the drive and the memory (`dmesg`), or set TANDEM_SCRATCH to a "
                    "folder on another drive");
}

void DiskChannel::fail(Direction direction, const Block& block, int error) const {
  const char* advice = error == ENOSPC || error == EDQUOT
                           ? "free space there, lower limits.disk_bytes, or set TANDEM_SCRATCH to another folder"
                           : "check the drive (`dmesg`), or set TANDEM_SCRATCH to a folder on another one";
  throw DeviceError(std::string("disk tier: ") + (direction == Direction::Read ? "reading " : "writing ") +
                    std::to_string(block.bytes) + " bytes at offset " + std::to_string(block.offset) +
                    " of the scratch file in " + file_.options().directory + ": " +
                    (error == 0 ? "nothing was transferred" : std::strerror(error)) + "; " + advice);
}

}  // namespace tandem
