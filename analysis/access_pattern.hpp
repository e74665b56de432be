// How a module's forward goes over memory: what caches, DRAM and a CPU make of it beside its flops and bytes. Must not
// know machines or runs.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "core/model/module.hpp"

namespace tandem {

enum class Access : std::uint8_t {
  Products,  // matrix products and attention: tiles that are read again
  Windows,   // convolutions and pools: neighbours of each place
  Gather,    // rows chosen by integers: embeddings, neighbours, routed tokens
  Stream,    // each byte once, in order: norms, activations, sums
};
inline constexpr int kAccessCount = 4;
constexpr std::string_view name_of(Access access) {
  constexpr std::string_view kNames[] = {"products", "windows", "gather", "stream"};
  static_assert(std::size(kNames) == kAccessCount);
  return kNames[static_cast<int>(access)];
}

// Bytes of a forward's kernels by how they are gone over.
struct AccessBytes {
  std::array<std::int64_t, kAccessCount> bytes{};
  Access most() const;
  // The two that move most, or one that moves three quarters: "stream+products".
  std::string words() const;
};
AccessBytes access_of(const Module& module);

}  // namespace tandem
