// Makes numbers of compressed weights: core/transforms/weight_compression.cpp has the operands.
#include "runtime/bodies/common/block_tiles.hpp"
#include "runtime/bodies/common/device_kernels.hpp"
#include "runtime/body_table.hpp"
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
  share_blocks(span.blocks,
               [&](std::int64_t first, std::int64_t count) { decode_weights(part_of(span, first, count)); });
  return 0;
}

constexpr BodyEntry kBodies[] = {{"weights.decode", decode, kRepeatable}};

}  // namespace

std::span<const BodyEntry> weights_bodies() { return kBodies; }

}  // namespace tandem
