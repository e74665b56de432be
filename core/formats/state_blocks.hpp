// How optimizer states are stored that are quantised block by block: sizes that the plan, bodies and checkpoints share.
// Must not know what the codes mean (runtime/optimizer/state_map.hpp).
#pragma once

#include <cstdint>

namespace tandem {

// So many numbers of a state in so many bytes: an fp32 scale, then their codes. Fields of buckets begin at whole
// blocks, so that no block has numbers of two tensors.
struct StateBlock {
  std::int64_t elements = 1, bytes = 4;
};

inline constexpr std::int64_t kScaleBytes = 4;

// 8 bits: after Dettmers et al. (ICLR 2022, arXiv 2110.02861), whose blocks have 2,048 numbers: then one of fp32
// parameters would not fit into a page, at which policies cut (Op::cut_bytes). 4 bits: Li et al. (NeurIPS 2023, arXiv
// 2309.01507), whose blocks have 128. 32, 16: fp32 and bf16 numbers, no
// blocks.
constexpr StateBlock state_block(std::int64_t bits) {
  if (bits == 8) return {256, kScaleBytes + 256};
  if (bits == 4) return {128, kScaleBytes + 64};
  return {1, bits / 8};
}
static_assert(state_block(8).bytes - kScaleBytes == state_block(8).elements * 8 / 8);
static_assert(state_block(4).bytes - kScaleBytes == state_block(4).elements * 4 / 8);

}  // namespace tandem
