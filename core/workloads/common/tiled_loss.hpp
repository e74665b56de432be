// The output layer and its cross entropy over a tile of a micro-batch's tokens at a time (workload.loss_tiles): of the
// logits and what the loss makes of them, 14 bytes each in 16 bits, a tile's exist at once. As the logits' gradient
// needs nothing from later layers, the forward goes on with it tile by tile, and leaves the gradients of the layer's
// input and weights, which the backward hands on; nothing is computed twice. (The tiling of ZeRO-Infinity, section
// 5.1.3, which cuts a linear layer's weight instead, would leave all logits of a tile's columns in memory.)
// Weights' gradients are sums over tiles, rounded to the network's precision after each.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workloads/common/plan.hpp"
#include "core/workloads/common/transformer.hpp"

namespace tandem {

// Tokens of a tile; the last has what is left.
inline std::int64_t tokens_a_tile(std::int64_t tokens, std::int64_t tiles) { return (tokens + tiles - 1) / tiles; }

// What the forward leaves to the backward: the gradients of the decoder's input, of its weight and, if `bias`, of that.
void add_tiled_loss(StageSpec& stage, const TransformerSizes& s, bool bias);

// `gradients`: with them, in training; else for the loss alone.
std::vector<Kernel> tiled_decoder_kernels(const TransformerSizes& s, bool gradients, bool bias);
void meter_tiled_decoder(WorkspaceMeter& meter, const TransformerSizes& s, bool gradients);

// The backward's part: the weight's and the bias's gradients go to their places.
std::vector<Kernel> hand_on_kernels(const TransformerSizes& s, bool accumulates);

}  // namespace tandem
