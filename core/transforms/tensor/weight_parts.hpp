// Which part of a weight of the whole network a rank has, of those that divide its layers. Must not know where the
// numbers are, or steps.
#pragma once

#include <algorithm>
#include <cstdint>
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
  // Calls `visit(done, place, elements)` for what of the part's elements [first, first + count) lies in a row in the
  // whole weight: how many come before it, its place there, how many it is. Behind the whole weight's rows there may be
  // some that are nobody's: these are left out.
  template <typename Visit>
  void for_each_run(std::int64_t first, std::int64_t count, std::int64_t rank, const Visit& visit) const {
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t at = first + done, begin = place(at, rank);
      const std::int64_t some = std::min(count - done, block - at % block);
      if (const std::int64_t there = std::clamp<std::int64_t>(whole.elements() - begin, 0, some); there > 0)
        visit(done, begin, there);
      done += some;
    }
  }
};

// By the names that the divided network has for them: "block3_1.qkv.weight".
using WeightParts = std::map<std::string, WeightPart, std::less<>>;
WeightParts weight_parts(const Network& whole, const Network& divided);

}  // namespace tandem
