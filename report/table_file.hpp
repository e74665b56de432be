// A file that grows by lines while a run goes on, of one run at a time. What it held before stays until the run begins,
// and then goes at once: whoever reads it, or kills the run, meets the old lines or the new ones. Must not know what
// lines mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

class TableFile {
 public:
  // Makes the file if there is none, and locks it. Throws ConfigError, which names `flag`, if it cannot be written or
  // another run has it.
  TableFile(const std::string& flag, std::string path);
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  // All that it holds from here on; what is appended comes behind it.
  void begin(const std::string& text);
  void append(const std::string& text);
  // In the place of what was appended last.
  void replace_last(const std::string& text);
  // Returns once all of it is on the disk.
  void sync();
  void close();

  const std::string& path() const { return path_; }
  // Of the first call that failed; "" if none did. After it nothing more is written.
  const std::string& error() const { return error_; }

 private:
  void put(const std::string& text);
  bool lock_what_is_there();
  void fail(int error);

  std::string path_, error_;
  int descriptor_ = -1;
  bool direct_ = false;              // a device or a pipe: nothing to replace
  std::int64_t end_ = 0, last_ = 0;  // bytes, and where what was appended last begins
};

// The lines of a table that is there, without a last one that has no end: a killed process had not wholly written it.
// None where it is no file. Throws DeviceError if it cannot be read: what is not read would be lost.
std::vector<std::string> whole_lines(const std::string& flag, const std::string& path);

}  // namespace tandem
