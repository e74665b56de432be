// A graph with the features and labels of its nodes, in one safetensors file that is mapped: what is not read takes no
// memory. Must not know batches, networks or seeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/base/dtype.hpp"
#include "core/scenario/scenario.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/media/neighbours.hpp"

namespace tandem {

// All bytes of a file, read where they are looked at. The file stays as it is meanwhile: one that becomes shorter ends
// the process.
class MappedFile {
 public:
  // Throws UnreadableFile.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {begin_, size_}; }

 private:
  const std::byte* begin_ = nullptr;
  std::size_t size_ = 0;
};

class GraphFile {
 public:
  // Looks at all rows, neighbours and lists of nodes. Throws ConfigError with the key, the file and the tensor, for a
  // file that cannot be read or has a tensor that is missing, of another type or shape, or out of range.
  explicit GraphFile(const Scenario& scenario);

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return file_->bytes(); }  // of the whole file
  std::int64_t nodes() const { return graph_->nodes(); }
  const CsrGraph& graph() const { return *graph_; }
  // [nodes, inputs] in fp32, fp16 or bf16; rows begin where they like.
  DType feature_type() const { return feature_type_; }
  std::int64_t inputs() const { return inputs_; }
  const std::byte* features_of(std::int64_t node) const { return features_ + node * inputs_ * size_of(feature_type_); }
  std::span<const std::int64_t> labels() const { return labels_; }
  // Nodes, none twice, and none in both; none: the file does not say.
  const std::optional<std::span<const std::int64_t>>& train() const { return train_; }
  const std::optional<std::span<const std::int64_t>>& held_out() const { return held_out_; }

 private:
  using Entry = SafetensorsFile::Entry;
  const Entry& tensor(const std::string& name, std::size_t dimensions, const std::string& allowed) const;
  template <typename T>
  std::span<const T> numbers(const std::string& name, const std::string& allowed) const;
  void read_rows();
  void read_nodes();
  void read_lists();
  [[noreturn]] void fail(const std::string& name, const std::string& problem, const std::string& allowed) const;

  const Scenario& scenario_;  // for messages, while it is made
  std::string path_;
  std::unique_ptr<SafetensorsFile> header_;
  std::unique_ptr<MappedFile> file_;
  std::unique_ptr<CsrGraph> graph_;
  DType feature_type_ = DType::F32;
  std::int64_t inputs_ = 0;
  const std::byte* features_ = nullptr;
  std::span<const std::int64_t> labels_;
  std::optional<std::span<const std::int64_t>> train_, held_out_;
};

}  // namespace tandem
