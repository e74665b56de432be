#include "runtime/executors/disk_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/errors.hpp"
#include "core/base/system_calls.hpp"
#include "runtime/executors/disk_alignment.hpp"

namespace tandem {
namespace {

// A file without a name, in `directory`; O_TMPFILE where the filesystem has it, else made and unlinked.
int open_scratch(const std::string& directory, int flags) {
  const int unnamed =
      uninterrupted([&] { return open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | flags, S_IRUSR | S_IWUSR); });
  if (unnamed >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return unnamed;
  std::string path = directory + "/tandem_scratch_XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC | flags);
  if (named >= 0 && unlink(path.c_str()) != 0) {
    const int error = errno;
    close(named);
    errno = error;
    return -1;
  }
  return named;
}

}  // namespace

DiskFile::DiskFile(DiskOptions options) : options_(std::move(options)), sums_(options_.bytes) {
  descriptor_ = open_scratch(options_.directory, O_DIRECT);
  if (descriptor_ < 0 && errno == EINVAL) {
    note_ = options_.directory + ": the filesystem refuses direct I/O; the disk tier goes through the page cache";
    descriptor_ = open_scratch(options_.directory, 0);
  }
  // A sparse file: space is taken as it is written, since the planned peak may be far below the cap.
  const auto enlarge = [&] { return ftruncate(descriptor_, disk_round_up(options_.bytes)); };
  if (descriptor_ < 0 || uninterrupted(enlarge) != 0) {
    const std::string reason = std::strerror(errno);
    if (descriptor_ >= 0) close(descriptor_);
    throw DeviceError("disk tier: cannot make a scratch file of " + std::to_string(options_.bytes) + " bytes in " +
                      options_.directory + ": " + reason + "; set TANDEM_SCRATCH to a folder that can hold it");
  }
}

std::string DiskFile::try_folder(const std::string& directory) {
  DiskOptions options;
  options.directory = directory;
  return DiskFile(std::move(options)).note();
}

DiskFile::~DiskFile() { close(descriptor_); }

}  // namespace tandem
