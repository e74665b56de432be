// A folder that `tandem import` wrote, as a network. Must not know scenarios or LibTorch.
#pragma once

#include <string>
#include <vector>

#include "core/model/imported/program.hpp"
#include "core/model/network.hpp"

namespace tandem {

struct ImportedNetwork {
  Network network;
  std::vector<std::string> constants;  // by tensor of the batch: likewise; "": it is data
};

inline constexpr const char* kNetworkFile = "network.yaml";
inline constexpr const char* kPrograms = "programs";
inline constexpr const char* kTensors = "tensors.safetensors";

// Throws ConfigError, of what is wrong in the folder with the file, line and column, and for sizes that it was not
// imported for.
ImportedNetwork read_import(const std::string& folder, const ImportedSizes& sizes);

}  // namespace tandem
