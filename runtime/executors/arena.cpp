#include "runtime/executors/arena.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"

namespace tandem {
namespace {

[[noreturn]] void refuse(const std::string& name, std::int64_t bytes, const char* what, const char* advice) {
  throw DeviceError(name + " arena: " + what + " of " + std::to_string(bytes) +
                    " bytes failed: " + std::strerror(errno) + "; " + advice);
}

}  // namespace

Arena::Arena(std::string name, std::int64_t bytes, bool lock) : name_(std::move(name)), bytes_(bytes) {
  CHECK(bytes >= 0, name_, bytes);
  if (bytes == 0) return;
  void* map = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) refuse(name_, bytes, "mapping", "lower limits in the scenario or raise `ulimit -v`");
  data_ = static_cast<std::byte*>(map);
  release_ = [bytes](std::byte* data) { munmap(data, static_cast<std::size_t>(bytes)); };
  // Fewer page faults when bytes are first touched, as a device's memory and pinned memory have none. A kernel without
  // huge pages refuses, and the arena works all the same.
  [[maybe_unused]] const int advised = madvise(data_, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  if (lock && mlock(data_, static_cast<std::size_t>(bytes)) != 0) {
    const int error = errno;
    munmap(data_, static_cast<std::size_t>(bytes));
    errno = error;
    refuse(name_, bytes, "locking", "lower limits in the scenario or raise `ulimit -l`");
  }
}

Arena::Arena(std::string name, std::byte* data, std::int64_t bytes, std::function<void(std::byte*)> release)
    : name_(std::move(name)), data_(data), bytes_(bytes), release_(std::move(release)) {}

Arena::~Arena() {
  if (data_ != nullptr) release_(data_);
}

Arena::Arena(Arena&& other) noexcept
    : name_(std::move(other.name_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      release_(std::move(other.release_)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(release_, other.release_);
  return *this;
}

std::byte* Arena::at(std::int64_t offset, std::int64_t bytes) const {
  CHECK(offset >= 0 && bytes >= 0 && offset <= bytes_ - bytes, name_, "arena of", bytes_, "bytes: range", offset,
        bytes);
  return data_ + offset;
}

bool Arena::contains(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  return !std::less<>()(byte, data_) && std::less<>()(byte, data_ + bytes_);
}

}  // namespace tandem
