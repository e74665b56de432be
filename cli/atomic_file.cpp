#include "cli/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/system_calls.hpp"

namespace tandem {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

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
  const bool direct = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (direct) {
    descriptor_ = uninterrupted([&] { return ::open(path_.c_str(), O_WRONLY | O_CLOEXEC); });
    if (descriptor_ < 0) fail("open", errno);
    return;
  }
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path_, error))) path_ = through_links(path_);
  temporary_.emplace(path_);
  if (temporary_->error() != 0) fail("create", temporary_->error());
  descriptor_ = temporary_->descriptor();
}

AtomicFile::~AtomicFile() {
  if (!temporary_ && descriptor_ >= 0) ::close(descriptor_);
}

void AtomicFile::write(std::string_view bytes) {
  buffer_.append(bytes);
  if (buffer_.size() >= kBufferBytes) flush();
}

void AtomicFile::flush() {
  for (std::size_t done = 0; done < buffer_.size();) {
    const ssize_t written =
        uninterrupted([&] { return ::write(descriptor_, buffer_.data() + done, buffer_.size() - done); });
    if (written < 0) fail("write", errno);
    done += static_cast<std::size_t>(written);
  }
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  if (temporary_) {
    if (!temporary_->become())
      fail(temporary_->has_name() ? "sync the folder of" : "sync and rename", temporary_->error());
    return;
  }
  if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0 && errno != EINVAL) fail("sync", errno);
  if (!is_closed(::close(std::exchange(descriptor_, -1)))) fail("close", errno);
}

void AtomicFile::fail(const char* what, int error) const {
  throw FileError(std::string("cannot ") + what + " " + path_ + ": " + std::strerror(error) + "; " + advice(error) +
                      (temporary_ && !temporary_->has_name() ? "; nothing was written under that name" : ""),
                  error);
}

void write_file(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace tandem
