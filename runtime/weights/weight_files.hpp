// Weights that somebody else saved: one safetensors file, or several with the index that says which tensor is in which,
// as Hugging Face's hub lays them out. Must not know what the tensors are weights of.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/checkpoint/safetensors.hpp"

namespace tandem {

// A tensor, and the file that it is in.
struct StoredTensor {
  std::string name;
  const SafetensorsFile* file = nullptr;
  const SafetensorsFile::Entry* entry = nullptr;
  std::string shown() const;  // "tensor 'wte.weight' of DIR/model.safetensors"
};

class WeightFiles {
 public:
  // A .safetensors file, a model.safetensors.index.json, or a folder that has one of them. Reads headers alone. Throws
  // ConfigError that goes on from "weights: ": for what cannot be read, is malformed, or names files outside the
  // index's folder.
  explicit WeightFiles(const std::string& path);

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::string& path() const { return path_; }      // of the file, or of the index
  const std::string& folder() const { return folder_; }  // that it is in
  std::vector<std::string> files() const;                // that hold tensors

 private:
  void read_index();
  const SafetensorsFile& open(const std::string& path);

  std::string path_, folder_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files_;  // by path
  std::map<std::string, StoredTensor> tensors_;
};

// "[4, 8]".
std::string shown_shape(const std::vector<std::int64_t>& shape);

}  // namespace tandem
