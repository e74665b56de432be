// What language models have in common: batches of tokens, and the loss over a vocabulary. Must not know their blocks.
#pragma once

#include <string>
#include <utility>

#include "core/model/network.hpp"
#include "core/workloads/common/transformer.hpp"

namespace tandem {

// Inputs and targets, [batch, sequence] int64 each.
std::pair<Signal, Signal> token_batch(NetworkBuilder& n, const TransformerSizes& s);
// The work that fills them; `what`: "next_tokens" or "masked_tokens".
Work token_load(const std::string& what, const TransformerSizes& s);

// The output layer and its mean cross entropy: by a weight of its own, or by `shared` (kNone: none); in tiles of tokens
// if the sizes say so.
LocalId language_loss(ModuleBuilder& m, const TransformerSizes& s, LocalId x, LocalId targets, LocalId shared,
                      bool bias);

}  // namespace tandem
