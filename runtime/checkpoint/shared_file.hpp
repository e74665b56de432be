// A file of a checkpoint that several processes write, each what it has, at its place. Errors are as of SavedFile. Must
// not know what is in it.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

class SharedFile {
 public:
  // Creates it, unless another has.
  explicit SharedFile(std::string path);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  void write_at(std::int64_t offset, const void* bytes, std::int64_t count);
  // Returns once all that this process wrote is on the disk: how many bytes.
  std::int64_t finish();

 private:
  std::string path_;
  std::int64_t bytes_ = 0;
  int descriptor_ = -1;
};

// Returns once what was written is on the disk, and the descriptor is -1.
void sync_and_close(const std::string& path, int& descriptor);

}  // namespace tandem
