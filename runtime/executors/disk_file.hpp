// The disk tier of one rank: a scratch file read and written past the page cache, in blocks with many in flight, each
// page compared with what was written. Must not know values or commands. The file has no name once open, so it is gone
// when the process ends, however it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/executors/page_sums.hpp"

namespace tandem {

struct DiskOptions {
  std::string directory;  // where the scratch file lives
  std::int64_t bytes = 0;
  std::int64_t block_bytes = std::int64_t{1} << 20;
  int in_flight = 16;  // blocks
  // For tests: sees the number and the result of each finished call and says what the result is to be.
  std::function<std::int32_t(std::int64_t call, std::int32_t result)> fault;
};

class DiskFile {
 public:
  // Throws DeviceError, naming the folder, when the file cannot be made.
  explicit DiskFile(DiskOptions options);
  ~DiskFile();
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  // Whether such a file can be made there. Returns what differs from direct I/O, as note(); throws as the constructor.
  static std::string try_folder(const std::string& directory);

  int descriptor() const { return descriptor_; }
  const DiskOptions& options() const { return options_; }
  // What differs from direct I/O on this folder, for people; "" if nothing does.
  const std::string& note() const { return note_; }

 private:
  friend class DiskChannel;
  DiskOptions options_;
  mutable PageSums sums_;
  mutable std::mutex shared_pages_;  // held where a page holds ends of two ranges
  int descriptor_ = -1;
  std::string note_;
};

// One thread's way into the file.
class DiskChannel {
 public:
  explicit DiskChannel(const DiskFile& file);
  ~DiskChannel();
  DiskChannel(const DiskChannel&) = delete;
  DiskChannel& operator=(const DiskChannel&) = delete;

  // Any offsets, lengths and addresses; those at multiples of 4096 go without an intermediate copy. Short transfers and
  // interrupted calls are retried. Throws DeviceError, saying what to do, for errors that retrying cannot mend, and
  // where a page that is read is not as it was written; by then nothing is in flight.
  void read(std::int64_t offset, std::byte* target, std::int64_t bytes);
  void write(std::int64_t offset, const std::byte* source, std::int64_t bytes);

 private:
  enum class Direction : std::uint8_t { Read, Write };
  struct Block {
    std::int64_t offset = 0;
    std::byte* memory = nullptr;
    std::int64_t bytes = 0;
    int stalled = 0;  // retries in a row that moved nothing
  };
  struct Completion {
    std::size_t slot = 0;
    std::int32_t result = 0;
  };
  struct Ring;

  void transfer(Direction direction, std::int64_t offset, std::byte* memory, std::int64_t bytes);
  void start(Direction direction, std::size_t slot);
  // False where the kernel takes no call now, for want of memory: the entry stays in the ring, to which no other is
  // added, so that it is never made.
  bool submit(Direction direction, std::size_t slot);
  Completion reap();  // waits for one
  bool has_finished() const;
  // Starts the rest of a block, or frees its slot.
  void finish(Direction direction, const Completion& done, std::exception_ptr& failure);
  // Moves a block past what a call transferred; false when it is wholly done. Throws DeviceError.
  bool advance(Direction direction, Block& block, std::int32_t result);
  // What was read since the last call with what was written there; what throws becomes the failure.
  void compare_read(std::exception_ptr& failure);
  void compare(const std::vector<Block>& blocks) const;
  [[noreturn]] void fail(Direction direction, const Block& block, int error) const;
  void through_bounce(Direction direction, std::int64_t offset, std::byte* memory, std::int64_t bytes);

  const DiskFile& file_;
  std::unique_ptr<Ring> ring_;  // none: the kernel offers no io_uring, and blocks go one by one
  bool submits_ = true;         // false: they do from now on, but for those that it has
  std::unique_ptr<std::byte, void (*)(std::byte*)> bounce_;
  std::vector<Block> blocks_;         // by slot
  std::vector<std::size_t> idle_;     // slots
  std::vector<Block> read_;           // and not yet compared
  std::vector<Completion> finished_;  // of calls made without the ring
  std::int64_t calls_ = 0;
};

}  // namespace tandem
