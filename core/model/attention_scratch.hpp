// What LibTorch's fused attention takes for itself, by how it splits its work. Must not know primitives.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/dtype.hpp"
#include "core/model/meter.hpp"

namespace tandem {

// How the CPU's kernel splits queries (by their number) and keys.
inline std::int64_t cpu_query_split(std::int64_t queries) {
  const std::int64_t split = queries >= 768 ? 256 : queries >= 192 ? 64 : 32;
  return std::min(split, queries);
}
inline std::int64_t cpu_key_split(std::int64_t keys) { return std::min<std::int64_t>(512, keys); }

// FlashAttention's forward in 16 bits cuts the keys into parts where blocks of 64 queries of all heads leave much of a
// GPU idle, and adds up what each part gave: the most that any GPU needs, up to kMostGpuProcessors. (PyTorch 2.11,
// aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp: num_splits_heuristic.)
std::int64_t gpu_split_keys_bytes(std::int64_t heads_of_all_sequences, std::int64_t queries, std::int64_t keys,
                                  std::int64_t size);

// FlashAttention's backward, where results must not depend on the order of sums, adds up the query's gradient, of so
// many numbers, in so many parts that blocks of all sequences and heads fill the GPU's multiprocessors.
inline std::int64_t gpu_query_gradient_bytes(std::int64_t heads_of_all_sequences, std::int64_t numbers) {
  constexpr std::int64_t kMiB = 1 << 20;
  const std::int64_t parts = (kMostGpuProcessors + heads_of_all_sequences - 1) / heads_of_all_sequences;
  const std::int64_t part = numbers * size_of(DType::F32);
  return std::max(64 * kMiB + 2 * part, 32 * kMiB + parts * part);
}

}  // namespace tandem
