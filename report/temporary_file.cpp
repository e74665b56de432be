#include "report/temporary_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/base/errors.hpp"
#include "core/base/system_calls.hpp"
#include "report/temporary_names.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0644, kPermissions = 0777;
constexpr int kAttempts = 100;
constexpr std::string_view kPartial = ".partial-", kFolder = "tandem-run.";

// "4711" or "4711-2": the process, and which of its files for one name.
bool is_process(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0 || c == '-'; });
}

// "4711.AbCd12", as mkdtemp() ends it.
bool is_process_folder(std::string_view text) {
  const std::size_t dot = text.find('.');
  constexpr std::size_t kRandom = 6;
  return dot != std::string_view::npos && is_process(text.substr(0, dot)) && text.size() == dot + 1 + kRandom;
}

// Whether nobody has it: takes the lock, which the descriptor then keeps.
bool lock(int descriptor) {
  return uninterrupted([&] { return ::flock(descriptor, LOCK_EX | LOCK_NB); }) == 0;
}

// The file may have been taken for a left one between its creation and its lock.
bool still_there(int descriptor, const std::string& name) {
  struct stat open {};
  struct stat named {};
  return ::fstat(descriptor, &open) == 0 && ::lstat(name.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

bool is_mine(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && status.st_uid == ::geteuid();
}

void sweep_files(const std::string& path) {
  const std::string begin = fs::path(path).filename().string() + std::string(kPartial);
  std::error_code error;
  for (fs::directory_iterator entry(folder_of(path), error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(begin) || !is_process(std::string_view(name).substr(begin.size()))) continue;
    std::error_code ignored;
    if (!fs::is_regular_file(entry->symlink_status(ignored))) continue;
    const int file = ::open(entry->path().c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    if (is_mine(file) && lock(file) && still_there(file, entry->path())) ::unlink(entry->path().c_str());
    ::close(file);
  }
}

void sweep_folders(const std::string& base) {
  std::error_code error;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kFolder) || !is_process_folder(std::string_view(name).substr(kFolder.size()))) continue;
    const int folder = ::open(entry->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) continue;
    if (is_mine(folder) && lock(folder) && still_there(folder, entry->path())) {
      empty_folder(folder);
      ::rmdir(entry->path().c_str());
    }
    ::close(folder);
  }
}

// The rename itself lasts once the folder is synced. Some file systems cannot, and some folders may be written to but
// not read; the file is whole either way. Returns errno, 0 where it worked.
int sync_folder_of(const std::string& path) {
  const std::string name = folder_of(path);
  const int folder = uninterrupted([&] { return ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (folder < 0) return errno == EACCES ? 0 : errno;
  const int synced = uninterrupted([&] { return ::fsync(folder); });
  const int error = synced != 0 && errno != EINVAL && errno != EROFS ? errno : 0;
  ::close(folder);
  return error;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const auto parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string through_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel has it
  fs::path at = path;
  std::error_code error;
  for (int links = 0; links < kMostLinks && fs::is_symlink(fs::symlink_status(at, error)); ++links) {
    const fs::path target = fs::read_symlink(at, error);
    if (error) return path;
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  const fs::path whole = fs::weakly_canonical(fs::absolute(at, error), error);
  return error ? at.string() : whole.string();
}

TemporaryFile::TemporaryFile(std::string path) : path_(std::move(path)) {
  sweep_files(path_);
  struct stat before {};
  const bool replaces = ::stat(path_.c_str(), &before) == 0;
  const std::string begin = path_ + std::string(kPartial) + std::to_string(::getpid());
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    name_ = attempt == 0 ? begin : begin + "-" + std::to_string(attempt);
    descriptor_ = uninterrupted(
        [&] { return ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode); });
    error_ = descriptor_ < 0 ? errno : 0;
    if (error_ == EEXIST) continue;
    if (error_ != 0) return;
    publish_temporary(name_.c_str(), -1);
    // Where a file system has no locks, nothing is swept either.
    if (!lock(descriptor_) && errno != EWOULDBLOCK) break;
    if (still_there(descriptor_, name_)) break;
    retract_temporary(name_.c_str());
    ::close(descriptor_);
    descriptor_ = -1;
    error_ = EEXIST;
  }
  there_ = descriptor_ >= 0;
  if (there_ && replaces && uninterrupted([&] { return ::fchmod(descriptor_, before.st_mode & kPermissions); }) != 0)
    error_ = errno;
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!there_) return;
  ::unlink(name_.c_str());
  retract_temporary(name_.c_str());
}

bool TemporaryFile::become() {
  // After a failed sync the page cache's state is unknown: give up, never retry.
  const bool synced = uninterrupted([&] { return ::fsync(descriptor_); }) == 0 || errno == EINVAL;
  if (!synced || ::rename(name_.c_str(), path_.c_str()) != 0) {
    error_ = errno;
    return false;
  }
  retract_temporary(name_.c_str());
  there_ = false;
  error_ = sync_folder_of(path_);
  return error_ == 0;
}

int TemporaryFile::release() { return std::exchange(descriptor_, -1); }

TemporaryFolder::TemporaryFolder() {
  const char* given = std::getenv("TMPDIR");
  const std::string base = given != nullptr && *given != '\0' ? given : "/tmp";
  sweep_folders(base);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    path_ = base + "/" + std::string(kFolder) + std::to_string(::getpid()) + ".XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) break;
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor_ < 0) continue;  // swept by another process already
    publish_temporary(path_.c_str(), descriptor_);
    if ((lock(descriptor_) || errno != EWOULDBLOCK) && still_there(descriptor_, path_)) return;
    retract_temporary(path_.c_str());
    ::close(descriptor_);
    descriptor_ = -1;
  }
  throw DeviceError("cannot make a folder for intermediate files in " + base + ": " + std::strerror(errno) +
                    "; set TMPDIR to a folder that you may write to");
}

TemporaryFolder::~TemporaryFolder() {
  if (descriptor_ < 0) return;
  std::error_code ignored;  // what cannot be removed is left to the next run
  fs::remove_all(path_, ignored);
  retract_temporary(path_.c_str());
  ::close(descriptor_);
}

}  // namespace tandem
