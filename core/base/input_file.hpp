// Input files: what stands where one should be, and its bytes, read whatever that is without waiting for a writer or
// for an end that does not come. Must not know formats.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <vector>

namespace tandem {

// "a folder", "a named pipe", "a pipe", "a socket" or "a device"; "" for a file, and for what is missing or may not be
// looked at, of which opening says why. A pipe without a name is what a shell hands over (tandem simulate <(command)).
std::string other_than_a_file(const std::string& path);

// Why `path` is nothing to read from its begin to its end: "is a folder". "" for a file, a pipe without a name (its
// writer is there), and what opening says more of.
std::string why_not_read(const std::string& path);

// `what()` goes on from the file's name: "is a named pipe", "cannot be opened: No such file or directory".
class UnreadableFile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Pipes { Refused, Read };  // those without a name; named ones are refused always

// A file, open for reading. All throw UnreadableFile.
class InputFile {
 public:
  explicit InputFile(const std::string& path, Pipes pipes = Pipes::Refused);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::int64_t bytes() const { return bytes_; }  // when it was opened; 0 for a pipe
  // The next bytes, as many as there are, at most `count`; 0 at the end.
  std::size_t read(char* out, std::size_t count) const;
  // `count` bytes from `first` on; false where it ends before.
  bool read_at(std::int64_t first, void* out, std::int64_t count) const;
  // All that is left, at most `most` bytes: more is refused.
  std::string rest(std::int64_t most) const;

 private:
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
};

std::string read_input_file(const std::string& path, std::int64_t most, Pipes pipes = Pipes::Refused);

// For readers of streams.
class InputBuffer final : public std::streambuf {
 public:
  explicit InputBuffer(const InputFile& file) : file_(file), bytes_(std::size_t{1} << 16) {}

 private:
  int_type underflow() override;

  const InputFile& file_;
  std::vector<char> bytes_;
};

}  // namespace tandem
