#include "core/machine/attention.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// Rows of queries, and of keys (flash_fwd_launch_template.h, flash_bwd_launch_template.h).
constexpr std::int64_t kBlock = 128;
// What goes on beside the products of a block of queries and one of keys, in columns of a head that would take as long
// (the softmax), and what it takes to begin and to end a row of such blocks, in blocks; where a mask cuts the last of
// them, more. Of 410 forwards of 15 us and more on an H200 (8 to 512 heads of 64 and 128 columns, 128 to 4,096 rows),
// 3% is the median error of what follows; of backwards, with heads of 32 to 128 columns, 4%.
constexpr double kForwardColumns = 29, kForwardBlocks = 1, kMaskedBlocks = 0.5;
constexpr double kBackwardColumns = 18, kBackwardBlocks = 1.8;

std::int64_t blocks_of(std::int64_t rows) { return (rows + kBlock - 1) / kBlock; }

double block_flops(const Kernel& kernel, int products, double more_columns) {
  return 2.0 * products * kBlock * kBlock * (static_cast<double>(kernel.k) + more_columns);
}

// How long rows of blocks take that run in this order as processors become free, all of them `heads` times.
double last_done(const std::vector<double>& rows, std::int64_t heads, std::int64_t processors) {
  CHECK(heads >= 0 && processors > 0, heads, processors);
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (std::int64_t i = 0; i < processors; ++i) free_at.push(0);
  double last = 0;
  for (std::int64_t head = 0; head < heads; ++head)
    for (const double row : rows) {
      const double done = free_at.top() + row;
      free_at.pop();
      free_at.push(done);
      last = std::max(last, done);
    }
  return last;
}

// A thread block for each block of queries of each head, those that see the fewest keys first. As many heads as there
// are processors leave them all done at about once, so that only what is left over is followed.
double forward_flops(const Kernel& kernel, std::int32_t processors) {
  const std::int64_t queries = blocks_of(kernel.n), keys = blocks_of(kernel.keys);
  std::vector<double> rows;
  double head = 0;
  for (std::int64_t query = 0; query < queries; ++query) {
    const std::int64_t seen = kernel.causal ? std::min(keys, query + 1) : keys;
    rows.push_back(static_cast<double>(seen) + kForwardBlocks + (kernel.causal ? kMaskedBlocks : 0));
    head += rows.back();
  }
  const std::int64_t whole = std::max<std::int64_t>(0, kernel.m / processors - 1);
  const double blocks = static_cast<double>(whole) * head + last_done(rows, kernel.m - whole * processors, processors);
  return block_flops(kernel, 2, kForwardColumns) * processors * blocks;
}

// Where the order of sums is part of the result, a head has just as many thread blocks as it takes to fill the GPU, and
// each takes every so manyth block of keys.
double backward_flops(const Kernel& kernel, std::int32_t processors) {
  const std::int64_t queries = blocks_of(kernel.n), keys = blocks_of(kernel.keys);
  const std::int64_t step = (processors + kernel.m - 1) / kernel.m, of_head = std::min(step, keys);
  CHECK(of_head >= 1, "a head without a thread block", kernel.m, kernel.keys);
  const std::int64_t rounds = (kernel.m * of_head + processors - 1) / processors;
  double longest = 0;
  for (std::int64_t first = 0; first < of_head; ++first) {
    double blocks = 0;
    for (std::int64_t key = first; key < keys; key += step)
      blocks +=
          static_cast<double>(kernel.causal ? std::max<std::int64_t>(1, queries - key) : queries) + kBackwardBlocks;
    longest = std::max(longest, blocks);
  }
  return block_flops(kernel, 5, kBackwardColumns) * processors * static_cast<double>(rounds) * longest;
}

}  // namespace

double attention_flops(const Kernel& kernel, std::int32_t processors) {
  CHECK(kernel.kind == KernelKind::Attention, static_cast<int>(kernel.kind));
  if (processors <= 0 || kernel.m <= 0 || kernel.keys <= 0) return static_cast<double>(kernel.flops);
  return kernel.backward ? backward_flops(kernel, processors) : forward_flops(kernel, processors);
}

}  // namespace tandem
