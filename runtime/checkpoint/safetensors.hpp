// The safetensors format (github.com/huggingface/safetensors): eight bytes of length, a JSON header, then the tensors'
// bytes. Must not know what the tensors mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/base/input_file.hpp"

namespace tandem {

struct TensorBytes {
  std::string name;
  DType type = DType::F32;
  std::vector<std::int64_t> shape;
  const std::byte* bytes = nullptr;
  std::int64_t size() const;  // in bytes
};

// The length and the header of a file that holds the tensors' bytes in this order; all of it a multiple of 8 bytes.
std::string safetensors_header(const std::vector<TensorBytes>& tensors);

// A file, open for reading. All throw DamagedCheckpoint: for one that cannot be read or is malformed, whose tensors do
// not lie one after another to its end, and for a tensor that is not there, or of another type or shape.
class SafetensorsFile {
 public:
  // A tensor as the file has it: its type as the format calls it, and where its bytes are, from the file's start.
  struct Entry {
    std::string type;
    std::vector<std::int64_t> shape;
    std::int64_t begin = 0, end = 0;
  };
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return path_; }
  std::size_t count() const { return entries_.size(); }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  // `bytes` of the file from `offset` on. May be asked by several threads.
  void read_at(std::int64_t offset, void* target, std::int64_t bytes) const;
  // Returns where it begins.
  std::int64_t find(const TensorBytes& tensor) const;
  void read(const std::string& name, DType type, const std::vector<std::int64_t>& shape, std::byte* target) const;
  // Some bytes of a tensor, from `first` on.
  void read_part(const TensorBytes& tensor, std::int64_t first, std::int64_t bytes, std::byte* target) const;

 private:
  void read_header(const std::string& text, std::int64_t data);
  void require_no_gaps(std::int64_t data) const;
  [[noreturn]] void fail(const std::string& problem) const;

  std::string path_;
  std::unique_ptr<InputFile> file_;
  std::map<std::string, Entry> entries_;
};

}  // namespace tandem
