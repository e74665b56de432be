// Which part of a weight of the whole network a rank has, of those that divide its layers. Must not know where the
// numbers are, or steps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/graph/graph.hpp"
#include "core/model/network.hpp"

namespace tandem {

// Every `stride` elements of the whole weight begin with a block for each rank, in their order.
struct WeightPart {
  std::string name;  // of the whole weight: "block3.qkv.weight"
  Field whole;
  std::int64_t block = 0, stride = 0;
  bool is_divided() const { return block < stride; }
  // The place in the whole weight of an element of the part.
  std::int64_t place(std::int64_t element, std::int64_t rank) const {
    return is_divided() ? element / block * stride + rank * block + element % block : element;
  }
};

// By the names that the divided network has for them: "block3_1.qkv.weight".
using WeightParts = std::map<std::string, WeightPart, std::less<>>;
WeightParts weight_parts(const Network& whole, const Network& divided);

}  // namespace tandem
