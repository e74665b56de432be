#include "core/workloads/common/tiled_loss.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/workloads/common/language_head.hpp"

namespace tandem {
namespace {

std::int64_t weight_bytes(const TransformerSizes& s) { return s.vocabulary * s.hidden * size_of(s.type); }

// As a batch of one sequence.
TransformerSizes tile_of(TransformerSizes s, std::int64_t tokens) {
  s.batch = 1, s.sequence = tokens;
  return s;
}

void append_gradients(std::vector<Kernel>& kernels, const TransformerSizes& tile, bool first) {
  append(kernels, decoder_backward_kernels(tile, /*accumulates=*/false));
  if (!first) kernels.back().bytes += weight_bytes(tile);  // the sum so far
}

}  // namespace

void add_tiled_loss(StageSpec& stage, const TransformerSizes& s, bool bias) {
  stage.saved.push_back({"decoder_input_gradient", s.type, s.rows(s.hidden)});
  stage.saved.push_back({"decoder_weight_gradient", s.type, weight_bytes(s)});
  if (bias) stage.saved.push_back({"decoder_bias_gradient", s.type, s.vocabulary * size_of(s.type)});
  stage.reads_targets = true;
  stage.has_loss = stage.loss_gradient_in_forward = true;
}

std::vector<Kernel> tiled_decoder_kernels(const TransformerSizes& s, bool gradients, bool bias) {
  std::vector<Kernel> kernels = {memory_kernel(s.tokens() * size_of(DType::I64))};  // targets that count
  CHECK(s.loss_tiles >= 1 && s.loss_tiles <= s.tokens(), "tiles of no tokens", s.loss_tiles, s.tokens());
  const std::int64_t rows = tokens_a_tile(s.tokens(), s.loss_tiles);
  for (std::int64_t begin = 0; begin < s.tokens(); begin += rows) {
    const TransformerSizes tile = tile_of(s, std::min(rows, s.tokens() - begin));
    append(kernels, decoder_forward_kernels(tile));
    if (!gradients) continue;
    append_gradients(kernels, tile, begin == 0);
    if (bias) kernels.push_back(memory_kernel(tile.rows(s.vocabulary)));
  }
  return kernels;
}

void meter_tiled_decoder(WorkspaceMeter& meter, const TransformerSizes& s, bool gradients) {
  const TransformerSizes tile = tile_of(s, tokens_a_tile(s.tokens(), s.loss_tiles));
  meter.touch_all({s.tokens(), s.tokens() * size_of(DType::F32)});  // which targets count, as bytes and as numbers
  for (int scalar = 0; scalar < 4; ++scalar)
    meter.take(size_of(DType::F32));    // their number, in all and in a tile; the loss likewise
  meter.take(tile.rows(s.vocabulary));  // logits, then their gradient
  const std::int64_t wide = tile.tokens() * s.vocabulary * size_of(DType::F32);
  meter.take(wide);                             // log-probabilities
  if (s.type != DType::F32) meter.touch(wide);  // logits in fp32
  if (!gradients) return;
  meter.take(size_of(DType::F32));              // the loss's own gradient
  meter.take(wide);                             // and that of log-probabilities
  if (s.type != DType::F32) meter.touch(wide);  // that of logits in fp32, before it is rounded
  meter.touch(s.vocabulary * size_of(s.type));  // a tile's part of the bias's
}

std::vector<Kernel> hand_on_kernels(const TransformerSizes& s, bool accumulates) {
  return {memory_kernel((accumulates && !s.tied ? 3 : 2) * weight_bytes(s))};
}

}  // namespace tandem
