#include "runtime/checkpoint/shared_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/system_calls.hpp"
#include "runtime/checkpoint/saved_file.hpp"

namespace tandem {
namespace {

constexpr mode_t kMode = 0644;

}  // namespace

SharedFile::SharedFile(std::string path) : path_(std::move(path)) {
  descriptor_ =
      uninterrupted([&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kMode); });
  if (descriptor_ < 0) fail_at("create", path_, errno);
}

SharedFile::~SharedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SharedFile::write_at(std::int64_t offset, const void* bytes, std::int64_t count) {
  for (std::int64_t done = 0; done < count;) {
    const ssize_t written = uninterrupted([&] {
      return ::pwrite(descriptor_, static_cast<const char*>(bytes) + done, static_cast<std::size_t>(count - done),
                      offset + done);
    });
    if (written < 0) fail_at("write", path_, errno);
    done += written;
  }
  bytes_ += count;
}

std::int64_t SharedFile::finish() {
  sync_and_close(path_, descriptor_);
  return bytes_;
}

// After a failed sync the page cache's state is unknown: give up, never retry.
void sync_and_close(const std::string& path, int& descriptor) {
  if (uninterrupted([&] { return ::fsync(descriptor); }) != 0) fail_at("sync", path, errno);
  const int closing = std::exchange(descriptor, -1);
  if (!is_closed(::close(closing))) fail_at("close", path, errno);
}

}  // namespace tandem
