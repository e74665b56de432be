// A file of a checkpoint while it is written, and how files and folders reach the disk. Errors are DeviceErrors that
// name the file and say what to do. Must not know what is in a file.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "runtime/checkpoint/checksum.hpp"

namespace tandem {

// A checkpoint whose bytes are not those that were saved, or no run's. `what()` names the file.
class DamagedCheckpoint : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct FileSum {
  std::int64_t bytes = 0;
  Checksum checksum;
};

class SavedFile {
 public:
  // Creates the file, which must not be there.
  explicit SavedFile(std::string path);
  // Removes the file unless finish() was called: what is half written takes room that a full disk lacks.
  ~SavedFile();
  SavedFile(const SavedFile&) = delete;
  SavedFile& operator=(const SavedFile&) = delete;

  void write(const void* bytes, std::int64_t count);
  // Returns once all of it is on the disk.
  FileSum finish();

 private:
  void put(const char* bytes, std::int64_t count);
  void flush();

  std::string path_, buffer_;
  Hasher hasher_;
  std::int64_t bytes_ = 0;
  int descriptor_ = -1;
};

// Reads all of a file. Throws DamagedCheckpoint for one that is not of so many bytes, before it is read, or is no file.
FileSum sum_of_file(const std::string& path, std::int64_t bytes);
// Makes the names in a folder last.
void sync_folder(const std::string& path);
[[noreturn]] void fail_at(const std::string& what, const std::string& path, int error);

}  // namespace tandem
