#include "report/table_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <istream>
#include <utility>

#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"
#include "core/base/system_calls.hpp"
#include "report/temporary_file.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_open(const std::string& what, int error) {
  const std::string text = what + ": cannot be written: " + std::strerror(error);
  if (is_of_the_system(error)) throw DeviceError(text + "; free some space, check the disk, or name another file");
  throw ConfigError(text + "; name a file in a folder that you may write to");
}

bool is_open_as(int descriptor, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

}  // namespace

TableFile::TableFile(const std::string& flag, std::string path) : path_(std::move(path)) {
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  direct_ = fs::exists(status) && !fs::is_regular_file(status);
  if (!direct_ && fs::is_symlink(fs::symlink_status(path_, error))) path_ = through_links(path_);
  for (bool settled = false; !settled;) {
    descriptor_ = uninterrupted([&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644); });
    if (descriptor_ < 0) fail_to_open(flag + " " + path_, errno);
    if (direct_) return;
    if (!lock_what_is_there())
      throw ConfigError(flag + " " + path_ + ": another run writes it; name another file, or wait for that run's end");
    // The other run may have put a new file in its place meanwhile.
    settled = is_open_as(descriptor_, path_);
    if (!settled) ::close(std::exchange(descriptor_, -1));
  }
}

TableFile::~TableFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool TableFile::lock_what_is_there() {
  if (uninterrupted([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) == 0 || errno != EWOULDBLOCK) return true;
  ::close(std::exchange(descriptor_, -1));
  return false;
}

void TableFile::fail(int error) {
  if (error_.empty()) error_ = std::strerror(error);
}

void TableFile::begin(const std::string& text) {
  if (direct_) return put(text);
  TemporaryFile fresh(path_);
  if (fresh.error() != 0) return fail(fresh.error());
  const int old = std::exchange(descriptor_, fresh.descriptor());
  put(text);
  // The new file is locked before it has the name, and the old one until then: no other run can come in between.
  if (!error_.empty() || !fresh.become()) {
    fail(fresh.error());
    descriptor_ = old;
    return;
  }
  fresh.release();
  ::close(old);
  last_ = end_;
}

void TableFile::put(const std::string& text) {
  for (std::size_t done = 0; error_.empty() && done < text.size();) {
    const ssize_t written = uninterrupted([&] { return ::write(descriptor_, text.data() + done, text.size() - done); });
    if (written < 0) return fail(errno);
    done += static_cast<std::size_t>(written);
  }
  end_ += static_cast<std::int64_t>(text.size());
}

void TableFile::append(const std::string& text) {
  last_ = end_;
  put(text);
}

// Over it, so that a reader finds one of the two there, never none.
void TableFile::replace_last(const std::string& text) {
  if (direct_ || !error_.empty()) return;
  for (std::size_t done = 0; error_.empty() && done < text.size();) {
    const std::int64_t at = last_ + static_cast<std::int64_t>(done);
    const ssize_t written =
        uninterrupted([&] { return ::pwrite(descriptor_, text.data() + done, text.size() - done, at); });
    if (written < 0) return fail(errno);
    done += static_cast<std::size_t>(written);
  }
  end_ = last_ + static_cast<std::int64_t>(text.size());
  if (uninterrupted([&] { return ::ftruncate(descriptor_, end_); }) != 0 || ::lseek(descriptor_, end_, SEEK_SET) < 0)
    fail(errno);
}

void TableFile::sync() {
  if (!error_.empty()) return;
  const int synced = uninterrupted([&] { return ::fdatasync(descriptor_); });
  if (synced != 0 && errno != EINVAL && errno != EROFS) fail(errno);
}

void TableFile::close() {
  if (descriptor_ >= 0 && !is_closed(::close(std::exchange(descriptor_, -1)))) fail(errno);
}

std::vector<std::string> whole_lines(const std::string& flag, const std::string& path) {
  if (!other_than_a_file(path).empty()) return {};
  try {
    const InputFile file(path);
    InputBuffer buffer(file);
    std::istream in(&buffer);
    in.exceptions(std::ios::badbit);  // what cannot be read is no end
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line) && !in.eof();) lines.push_back(line);
    return lines;
  } catch (const UnreadableFile& error) {
    throw DeviceError(flag + " " + path + ": " + error.what() +
                      ", and its lines of earlier steps would be lost; check the disk, or name another file");
  }
}

}  // namespace tandem
