// What language models have in common: batches of tokens, and the loss over a vocabulary. Must not know their blocks.
#pragma once

#include <string>
#include <utility>

#include "core/model/families/common/transformer.hpp"
#include "core/model/network.hpp"

namespace tandem {

// Inputs and targets, [batch, sequence] int64 each, that are filled with `what`: "next_tokens" or "masked_tokens".
std::pair<Signal, Signal> token_batch(NetworkBuilder& n, const TransformerSizes& s, const std::string& what);

struct LanguageOutput {
  std::int64_t vocabulary = 0, padding = 0;  // columns of the logits behind the vocabulary's
  std::int64_t tiles = 1;
  double softcap = 0;  // logits stay below; 0: none, which tiles want
};
// The output layer without a loss: by a weight of its own, or by `shared` (kNone: none).
LocalId language_logits(ModuleBuilder& m, const LanguageOutput& output, LocalId x, LocalId shared, bool bias);
// The output layer and its mean cross entropy: in tiles of tokens if the sizes say so.
LocalId language_loss(ModuleBuilder& m, const LanguageOutput& output, LocalId x, LocalId targets, LocalId shared,
                      bool bias);

}  // namespace tandem
