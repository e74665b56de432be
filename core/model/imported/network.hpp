// A folder that `tandem import` wrote, as a network. Must not know scenarios or LibTorch.
#pragma once

#include <string>
#include <vector>

#include "core/model/network.hpp"

namespace tandem {

struct ImportedNetwork {
  Network network;
  // By module: the tensor of each weight in kTensors, which is the imported module's own name of it.
  std::vector<std::vector<std::string>> weights;
  std::vector<std::string> constants;  // by tensor of the batch: likewise; "": it is data
};

inline constexpr const char* kNetworkFile = "network.yaml";
inline constexpr const char* kPrograms = "programs";
inline constexpr const char* kTensors = "tensors.safetensors";

// Throws ConfigError, of what is wrong in the folder with the file, line and column.
ImportedNetwork read_import(const std::string& folder, std::int64_t batch);

}  // namespace tandem
