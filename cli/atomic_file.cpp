#include "cli/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/base/errors.hpp"

namespace tandem {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr mode_t kMode = 0644;

// Names of files being written, for the signal handler: at most a few at a time, each null or a string that its
// AtomicFile owns and clears here first.
std::array<std::atomic<const char*>, 8> open_names{};

void publish(const char* name) {
  for (auto& slot : open_names) {
    const char* none = nullptr;
    if (slot.compare_exchange_strong(none, name)) return;
  }
}

void retract(const char* name) {
  for (auto& slot : open_names) {
    const char* expected = name;
    if (slot.compare_exchange_strong(expected, nullptr)) return;
  }
}

std::string folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

const char* advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space or write to another folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a folder that you may write to";
    case ENOENT:
    case ENOTDIR:
      return "create the folder first";
    default:
      return "check the folder, or write to another one";
  }
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  // A device or a pipe is written to as it is: it must not be replaced by a file.
  direct_ = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path_, error)) && !direct_)
    path_ = std::filesystem::weakly_canonical(path_, error).string();
  if (direct_) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("open", errno);
    return;
  }
  temporary_ = path_ + ".partial-" + std::to_string(::getpid());
  // Published first: an interrupt may come as soon as the file is there.
  publish(temporary_.c_str());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (descriptor_ >= 0) return;
  const int error_number = errno;
  retract(temporary_.c_str());
  fail("create", error_number);
}

AtomicFile::~AtomicFile() {
  if (committed_) return;
  if (descriptor_ >= 0) ::close(descriptor_);
  if (direct_) return;
  ::unlink(temporary_.c_str());
  retract(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  buffer_.append(bytes);
  if (buffer_.size() >= kBufferBytes) flush();
}

void AtomicFile::flush() {
  for (std::size_t done = 0; done < buffer_.size();) {
    const ssize_t written = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", errno);
    done += static_cast<std::size_t>(written);
  }
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  // After a failed sync the page cache's state is unknown: give up, never retry.
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail("sync", errno);
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail("close", errno);
  committed_ = direct_;
  if (direct_) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename", errno);
  retract(temporary_.c_str());
  committed_ = true;
  // The rename itself lasts once the folder is synced. Some file systems cannot; the file is whole either way.
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  const int synced = ::fsync(folder);
  const int error = errno;
  ::close(folder);
  if (synced != 0 && error != EINVAL && error != EROFS) fail("sync the folder of", error);
}

void AtomicFile::fail(const char* what, int error) const {
  throw DeviceError(std::string("cannot ") + what + " " + path_ + ": " + std::strerror(error) + "; " + advice(error) +
                    (committed_ || direct_ ? "" : "; nothing was written under that name"));
}

void write_file(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void remove_temporary_files() noexcept {
  for (auto& slot : open_names)
    if (const char* name = slot.load()) ::unlink(name);
}

}  // namespace tandem
