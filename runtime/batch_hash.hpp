// The one source of chance in batches: a number that is a pure function of what it is drawn for.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/base/mix.hpp"
#include "runtime/data.hpp"

namespace tandem {

// How the samples of a training step, which are numbered, are dealt out to batches.
struct SampleOrder {
  std::uint64_t seed = 0;
  std::int64_t ranks = 1;
  // Checkpoints of format 2 go on as they began: each micro-batch had samples of its own, whatever its size.
  bool by_micro_batch = false;
};

// A row of a training step's global batch: what is drawn for it depends on its number in the step alone, which counts
// on from micro-batch to micro-batch, and in one of them from rank to rank. So a step of so many samples has the same
// ones in the same order, however they are cut into micro-batches and shared among ranks.
struct RowKey {
  std::uint64_t seed = 0;
  std::int32_t step = 0, micro_batch = 0;
  std::int64_t row = 0;

  std::uint64_t draw(std::int64_t index) const {
    std::uint64_t x = seed;
    for (std::int64_t part : {std::int64_t{step}, std::int64_t{micro_batch}, row, index})
      x = mix(x ^ static_cast<std::uint64_t>(part));
    return x;
  }
};

constexpr RowKey row_key(const SampleOrder& order, BatchKey key, std::int64_t batch, std::int64_t row) {
  constexpr std::int32_t kHeldOut = -1;  // no training step
  const std::int32_t step = key.held_out ? kHeldOut : key.step;
  if (order.by_micro_batch) return {order.seed, step, key.micro_batch, key.rank * batch + row};
  return {order.seed, step, 0, (key.micro_batch * order.ranks + key.rank) * batch + row};
}

}  // namespace tandem
