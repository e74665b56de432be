// By which names the states of a bucket are found that hold its fp32 masters, or what 16-bit parameters lack of them.
// Must not know how they are used.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/graph/graph.hpp"

namespace tandem {

// fp16: all of a master. bf16: the rest of it. Without, the parameter is all there is.
inline constexpr std::string_view kMaster = "master", kMasterLow = "master_low";

// "block3.master" is the master of a stage.
inline bool is_state(const Tensor& tensor, std::string_view name) {
  return tensor.name.ends_with("." + std::string(name));
}

// Of an op that loads a bucket, its writes: the place of what files have in the parameter's stead, its masters if they
// are whole.
inline std::size_t leading_write(const Graph& graph, const Op& op) {
  return op.writes.size() > 1 && is_state(graph.tensor_of(op.writes[1].value), kMaster) ? 1 : 0;
}

}  // namespace tandem
