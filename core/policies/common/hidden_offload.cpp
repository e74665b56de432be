#include "core/policies/common/hidden_offload.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {
namespace {

bool back_in_time(const std::vector<BlockTimes>& blocks, std::int64_t count, std::int64_t ahead) {
  CHECK(count >= 0 && count <= std::ssize(blocks) && ahead >= 0, count, blocks.size(), ahead);
  std::int64_t out_ns = 0, back_ns = 0;  // when the ways are free
  std::vector<std::int64_t> gone_ns;
  for (std::int64_t i = 0; i < count; ++i) {
    const BlockTimes& block = blocks[static_cast<std::size_t>(i)];
    CHECK(block.out.busy_ns >= 0 && block.back.busy_ns >= 0 && block.saved_ns <= block.wanted_ns, i, block.out.busy_ns,
          block.back.busy_ns, block.saved_ns, block.wanted_ns);
    out_ns = std::max(out_ns, block.saved_ns) + block.out.busy_ns;
    gone_ns.push_back(out_ns + block.out.delay_ns);
  }
  for (std::int64_t i = count; i-- > 0;) {
    const auto from = static_cast<std::size_t>(std::min(i + ahead, std::ssize(blocks) - 1));
    const BlockTimes& block = blocks[static_cast<std::size_t>(i)];
    back_ns = std::max({back_ns, gone_ns[static_cast<std::size_t>(i)], blocks[from].wanted_ns}) + block.back.busy_ns;
    if (back_ns + block.back.delay_ns > block.wanted_ns) return false;
  }
  return true;
}

}  // namespace

// What sets out earlier is back no later.
std::optional<std::int64_t> backwards_ahead(const std::vector<BlockTimes>& blocks, std::int64_t count,
                                            std::int64_t least) {
  std::int64_t fewest = least, enough = std::max(least, std::ssize(blocks));
  if (!back_in_time(blocks, count, enough)) return std::nullopt;
  while (fewest < enough) {
    const std::int64_t middle = (fewest + enough) / 2;
    if (back_in_time(blocks, count, middle))
      enough = middle;
    else
      fewest = middle + 1;
  }
  return enough;
}

std::int64_t most_hidden(const std::vector<BlockTimes>& blocks, std::int64_t least_ahead) {
  std::int64_t count = std::ssize(blocks);
  while (count > 0 && !backwards_ahead(blocks, count, least_ahead)) --count;
  return count;
}

}  // namespace tandem
