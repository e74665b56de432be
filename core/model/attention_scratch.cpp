#include "core/model/attention_scratch.hpp"

#include <cmath>
#include <vector>

namespace tandem {
namespace {

std::int64_t parts_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// In how many parts keys are cut on a GPU that takes `slots` blocks of threads at once.
std::int64_t key_splits(std::int64_t blocks, std::int64_t slots, std::int64_t key_blocks) {
  constexpr std::int64_t kMostSplits = 128;
  constexpr float kFull = 0.8F, kNearBest = 0.85F;
  if (static_cast<float>(blocks) >= kFull * static_cast<float>(slots)) return 1;
  const std::int64_t most = std::min({kMostSplits, slots, key_blocks});
  std::vector<float> filled;  // 0: the same parts as with one split fewer
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    const bool differs = splits == 1 || parts_of(key_blocks, splits) != parts_of(key_blocks, splits - 1);
    const float waves = static_cast<float>(blocks * splits) / static_cast<float>(slots);
    filled.push_back(differs ? waves / std::ceil(waves) : 0);
  }
  const float best = *std::max_element(filled.begin(), filled.end());
  for (std::size_t i = 0; i < filled.size(); ++i)
    if (filled[i] > 0 && filled[i] >= kNearBest * best) return static_cast<std::int64_t>(i) + 1;
  return 1;
}

}  // namespace

std::int64_t gpu_split_keys_bytes(std::int64_t heads_of_all_sequences, std::int64_t queries, std::int64_t keys,
                                  std::int64_t size) {
  constexpr std::int64_t kQueries = 64, kSlots = 2;  // of a block; blocks that a multiprocessor takes at once
  const std::int64_t block_keys = size <= 64 ? 256 : size <= 128 ? 128 : 64;
  const std::int64_t blocks = heads_of_all_sequences * parts_of(queries, kQueries);
  std::int64_t splits = 1;
  for (std::int64_t processors = 1; processors <= kMostGpuProcessors; ++processors)
    splits = std::max(splits, key_splits(blocks, kSlots * processors, parts_of(keys, block_keys)));
  if (splits == 1) return 0;
  const std::int64_t unit = size <= 128 ? 32 : 64, rounded = parts_of(size, unit) * unit;
  const std::int64_t rows = splits * heads_of_all_sequences * queries;
  // The logarithms of sums, and the outputs; and what rounding to granules adds.
  return (rows + rows * rounded) * size_of(DType::F32) + 2 * kGpuGranule;
}

}  // namespace tandem
