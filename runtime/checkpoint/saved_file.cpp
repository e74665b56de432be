#include "runtime/checkpoint/saved_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"
#include "core/base/system_calls.hpp"
#include "runtime/checkpoint/shared_file.hpp"

namespace tandem {
namespace {

// Small fields are gathered, large ones go out as they lie, in pieces that the hash leaves in the cache.
constexpr std::int64_t kGather = std::int64_t{64} << 10;
constexpr std::int64_t kPiece = std::int64_t{1} << 20;
constexpr mode_t kMode = 0644;

const char* advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or choose another checkpoint.directory";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f), or choose another checkpoint.directory";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a checkpoint.directory that you may write to";
    default:
      return "check the folder and its disk, or choose another checkpoint.directory";
  }
}

}  // namespace

void fail_at(const std::string& what, const std::string& path, int error) {
  throw DeviceError("cannot " + what + " " + path + ": " + std::strerror(error) + "; " + advice(error) +
                    "; checkpoints that were complete stay");
}

SavedFile::SavedFile(std::string path) : path_(std::move(path)) {
  descriptor_ =
      uninterrupted([&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode); });
  if (descriptor_ < 0) fail_at("create", path_, errno);
}

SavedFile::~SavedFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

void SavedFile::write(const void* bytes, std::int64_t count) {
  const char* begin = static_cast<const char*>(bytes);
  if (count < kGather) {
    buffer_.append(begin, static_cast<std::size_t>(count));
    if (static_cast<std::int64_t>(buffer_.size()) >= kPiece) flush();
    return;
  }
  flush();
  for (std::int64_t done = 0; done < count; done += kPiece) put(begin + done, std::min(kPiece, count - done));
}

void SavedFile::flush() {
  put(buffer_.data(), static_cast<std::int64_t>(buffer_.size()));
  buffer_.clear();
}

void SavedFile::put(const char* bytes, std::int64_t count) {
  hasher_.update(bytes, static_cast<std::size_t>(count));
  bytes_ += count;
  for (std::int64_t done = 0; done < count;) {
    const ssize_t written =
        uninterrupted([&] { return ::write(descriptor_, bytes + done, static_cast<std::size_t>(count - done)); });
    if (written < 0) fail_at("write", path_, errno);
    done += written;
  }
}

FileSum SavedFile::finish() {
  flush();
  sync_and_close(path_, descriptor_);
  return {bytes_, hasher_.checksum()};
}

FileSum sum_of_file(const std::string& path, std::int64_t bytes) {
  const auto fail_size = [&](std::int64_t there) {
    throw DamagedCheckpoint(path + " is damaged: " + std::to_string(there) + " bytes, not " + std::to_string(bytes));
  };
  try {
    const InputFile file(path);
    if (file.bytes() != bytes) fail_size(file.bytes());
    std::vector<char> buffer(static_cast<std::size_t>(kPiece));
    Hasher hasher;
    std::int64_t done = 0;
    for (std::size_t got; (got = file.read(buffer.data(), buffer.size())) > 0;) {
      hasher.update(buffer.data(), got);
      if ((done += static_cast<std::int64_t>(got)) > bytes) fail_size(done);  // it grows
    }
    return {done, hasher.checksum()};
  } catch (const UnreadableFile& error) {
    throw DamagedCheckpoint(path + " " + error.what());
  }
}

void sync_folder(const std::string& path) {
  const int folder = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (folder < 0) fail_at("open", path, errno);
  const int synced = uninterrupted([&] { return ::fsync(folder); });
  const int error = errno;
  ::close(folder);
  // Some file systems cannot; the files in it are synced either way.
  if (synced != 0 && error != EINVAL) fail_at("sync", path, error);
}

}  // namespace tandem
