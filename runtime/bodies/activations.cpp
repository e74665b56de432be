// Stores activations sparse, and makes numbers of them again: core/transforms/sparse_activations.cpp has the operands.
#include <ATen/Parallel.h>

#include <algorithm>

#include "runtime/bodies/common/device_kernels.hpp"
#include "runtime/body_table.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/optimizer/sparse_blocks.hpp"

namespace tandem {
namespace {

void share_blocks(const SparseSpan& span, void (*work)(const SparseSpan&)) {
  constexpr std::int64_t kTileBlocks = 256;
  const std::int64_t blocks = sparse_blocks(span.elements);
  ThreadTeam::mine(at::get_num_threads())
      .share(static_cast<int>((blocks + kTileBlocks - 1) / kTileBlocks), [&](int tile) {
        const std::int64_t first = tile * kTileBlocks;
        work(part_of(span, first, std::min(kTileBlocks, blocks - first)));
      });
}

std::int64_t encode(BodyCall& call) {
  for (std::size_t i = 0; i < call.reads.size(); ++i) {
    const SparseSpan span =
        sparse_span(call.reads[i], call.writes[i], call.work.type, call.work.sizes.at(i + 1), call.work.sizes.at(0));
    call.processor == Processor::Device ? device_kernels().encode_sparse(span) : share_blocks(span, &encode_sparse);
  }
  return 0;
}

std::int64_t decode(BodyCall& call) {
  for (std::size_t i = 0; i < call.reads.size(); ++i) {
    const SparseSpan span =
        sparse_span(call.writes[i], call.reads[i], call.work.type, call.work.sizes.at(i + 1), call.work.sizes.at(0));
    call.processor == Processor::Device ? device_kernels().decode_sparse(span) : share_blocks(span, &decode_sparse);
  }
  return 0;
}

constexpr BodyEntry kBodies[] = {{"activations.encode", encode, kRepeatable},
                                 {"activations.decode", decode, kRepeatable}};

}  // namespace

std::span<const BodyEntry> activations_bodies() { return kBodies; }

}  // namespace tandem
