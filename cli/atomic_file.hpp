// A file that appears under its name only when it is complete: written beside it under a temporary name, synced,
// renamed. Knows nothing of what is in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/errors.hpp"
#include "report/temporary_file.hpp"

namespace tandem {

class FileError : public DeviceError {
 public:
  FileError(const std::string& text, int error) : DeviceError(text), error_(error) {}
  int error() const { return error_; }  // errno

 private:
  int error_;
};

class AtomicFile {
 public:
  // Creates the temporary file, with the mode of the file that it replaces, if it does. Throws FileError, as do all
  // other functions, naming the file and what to do.
  explicit AtomicFile(std::string path);
  // Removes the temporary file unless commit() was called.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  // Syncs and renames: from here on the file is there, whole.
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int error) const;
  void flush();

  std::string path_, buffer_;
  std::optional<TemporaryFile> temporary_;  // none: a device or a pipe, written to as it is
  int descriptor_ = -1;
};

// The whole of a small file at once.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace tandem
