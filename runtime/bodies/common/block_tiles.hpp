// Blocks of codes, shared out among the threads of this lane. Must not know what is done with them.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

#include "runtime/executors/thread_team.hpp"

namespace tandem {

// `work(first, count)`: of a tile of blocks.
template <typename Work>
void share_blocks(std::int64_t blocks, const Work& work) {
  constexpr std::int64_t kTileBlocks = 256;
  ThreadTeam::mine(at::get_num_threads())
      .share(static_cast<int>((blocks + kTileBlocks - 1) / kTileBlocks), [&](int tile) {
        const std::int64_t first = tile * kTileBlocks;
        work(first, std::min(kTileBlocks, blocks - first));
      });
}

}  // namespace tandem
