// What the random numbers of a call follow from, beside its own stream: the same in every pass over a micro-batch,
// wherever it runs.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

struct RandomKey {
  // Of a module by its name: "block3".
  static std::int64_t module_of(std::string_view name) {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return static_cast<std::int64_t>(hash >> 1);
  }
  std::uint64_t seed = 0;
  std::int64_t step = 0, module = 0, micro_batch = 0, rank = 0;
  bool draws = true;  // an evaluation draws nothing
};

}  // namespace tandem
