// Makes numbers of compressed weights: core/transforms/weight_compression.cpp has the operands.
#include <ATen/Parallel.h>

#include <algorithm>

#include "runtime/bodies/common/device_kernels.hpp"
#include "runtime/body_table.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/optimizer/weight_codes.hpp"

namespace tandem {
namespace {

std::int64_t decode(BodyCall& call) {
  const std::int64_t elements = call.work.sizes.at(0), bits = call.work.sizes.at(1);
  const WeightSpan span{call.reads[0], call.writes[0], call.work.type, bits, elements / weight_block(bits).elements};
  if (call.processor == Processor::Device) {
    device_kernels().decode_weights(span);
    return 0;
  }
  constexpr std::int64_t kTileBlocks = 256;
  ThreadTeam::mine(at::get_num_threads())
      .share(static_cast<int>((span.blocks + kTileBlocks - 1) / kTileBlocks), [&](int tile) {
        const std::int64_t first = tile * kTileBlocks;
        decode_weights(part_of(span, first, std::min(kTileBlocks, span.blocks - first)));
      });
  return 0;
}

constexpr BodyEntry kBodies[] = {{"weights.decode", decode, kRepeatable}};

}  // namespace

std::span<const BodyEntry> weights_bodies() { return kBodies; }

}  // namespace tandem
