// How many blocks' activations can leave the device and return without holding up a step, by estimates:
// SSDTrain's adaptive offloading (Wu et al., DAC 2025). Must not know graphs, nor where the activations go.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tandem {

struct Way {
  std::int64_t busy_ns = 0;   // for so long no other block can take it
  std::int64_t delay_ns = 0;  // and so much later the last byte has arrived
};

// A block's part in a step that nothing holds up, in ns since the step's begin.
struct BlockTimes {
  std::int64_t saved_ns = 0;   // its forward's end
  std::int64_t wanted_ns = 0;  // its backward's begin
  Way out, back;
};

// The fewest backwards ahead of which the first `count` blocks' activations must set out for each to be back in time,
// of at least `least`; none if one is too late anyhow. Both ways take one block at a time, the way out in forward order
// and the way back in backward order.
std::optional<std::int64_t> backwards_ahead(const std::vector<BlockTimes>& blocks, std::int64_t count,
                                            std::int64_t least);

// The largest such count.
std::int64_t most_hidden(const std::vector<BlockTimes>& blocks, std::int64_t least_ahead);

}  // namespace tandem
