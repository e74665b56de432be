// A file that appears under its name only when it is complete: written beside it under a temporary name, synced,
// renamed. Knows nothing of what is in it.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

class AtomicFile {
 public:
  // Creates the temporary file. Throws DeviceError, as do all other functions, naming the file and what to do.
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

  std::string path_, temporary_, buffer_;
  int descriptor_ = -1;
  bool committed_ = false;
  bool direct_ = false;  // a device or a pipe: nothing to rename
};

// The whole of a small file at once.
void write_file(const std::string& path, std::string_view bytes);

// Removes temporary files that are being written. Async-signal-safe: for handlers that end the process.
void remove_temporary_files() noexcept;

}  // namespace tandem
