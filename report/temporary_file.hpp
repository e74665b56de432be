// Files and folders under a temporary name: new ones, gone when their process ends, however it ends. What a process
// that was killed has left is removed by the next one that writes there: each is locked by its owner for as long as
// that lives. Must not know what is in them.
#pragma once

#include <string>

namespace tandem {

// A file beside the one that it is to become: "<path>.partial-<process>".
class TemporaryFile {
 public:
  // Creates it: a new file, through no link, with the mode of the file at `path` where there is one. error() says
  // whether that worked.
  explicit TemporaryFile(std::string path);
  // Closes it and removes it, unless it has become its file.
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int error() const { return error_; }  // errno; 0: it is there
  int descriptor() const { return descriptor_; }
  // Gives it its file's name, synced; `error()` says why it could not. The descriptor is then still this file's.
  bool become();
  // It has the name; where become() failed, it is not certain that it keeps it when the power fails.
  bool has_name() const { return !there_ && descriptor_ >= 0; }
  // The descriptor is the caller's from here on, and with it the lock.
  int release();

 private:
  std::string path_, name_;
  int descriptor_ = -1, error_ = 0;
  bool there_ = false;  // under its temporary name
};

// A folder for intermediate files, of which it holds no folders.
class TemporaryFolder {
 public:
  // Makes it in $TMPDIR, or in /tmp. Throws DeviceError.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

// Removes what this process has of both. Async-signal-safe: for handlers that end the process.
void remove_temporary_files() noexcept;

// The path of what would be written to: that of a link's target, be it there or not.
std::string through_links(const std::string& path);
// The folder that a file lies in, "." for a name alone.
std::string folder_of(const std::string& path);

}  // namespace tandem
