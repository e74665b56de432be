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
  // Divided two ways: ranks of which so many, neighbours, each have such a part, and a rank has these blocks of it. 0:
  // one way alone.
  std::int64_t neighbours = 0, own_block = 0, own_stride = 0;
  bool is_divided() const { return block < stride || own_block < own_stride; }
  // Of the ranks that have the same part.
  bool is_first_with_it(std::int64_t rank) const {
    if (neighbours == 0) return block < stride || rank == 0;
    return (block < stride || rank % neighbours == 0) && (own_block < own_stride || rank / neighbours == 0);
  }
  // The place in the whole weight of an element of the part.
  std::int64_t place(std::int64_t element, std::int64_t rank) const {
    if (neighbours == 0) return spread(element, rank, block, stride);
    return spread(in_row(element, rank), rank % neighbours, block, stride);
  }
  // Calls `visit(done, place, elements)` for what of the part's elements [first, first + count) lies in a row in the
  // whole weight: how many come before it, its place there, how many it is. Behind the whole weight's rows there may be
  // some that are nobody's: these are left out.
  template <typename Visit>
  void for_each_run(std::int64_t first, std::int64_t count, std::int64_t rank, const Visit& visit) const {
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t at = first + done, begin = place(at, rank);
      std::int64_t some = std::min(count - done, block - in_row(at, rank) % block);
      if (neighbours > 0) some = std::min(some, own_block - at % own_block);
      if (const std::int64_t there = std::clamp<std::int64_t>(whole.elements() - begin, 0, some); there > 0)
        visit(done, begin, there);
      done += some;
    }
  }

 private:
  static std::int64_t spread(std::int64_t element, std::int64_t rank, std::int64_t block, std::int64_t stride) {
    return block < stride ? element / block * stride + rank * block + element % block : element;
  }
  // Of an element, its place in what the neighbours divide.
  std::int64_t in_row(std::int64_t element, std::int64_t rank) const {
    return neighbours == 0 ? element : spread(element, rank / neighbours, own_block, own_stride);
  }
};

// By the names that the divided network has for them: "block3_1.qkv.weight".
using WeightParts = std::map<std::string, WeightPart, std::less<>>;
WeightParts weight_parts(const Network& whole, const Network& divided);
// Of a network that so many neighbours divide one way, and ranks that are as many apart the other.
WeightParts weight_parts(const Network& whole, const Network& one_way, const Network& two_ways,
                         std::int64_t neighbours);

}  // namespace tandem
