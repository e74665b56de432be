#include "core/model/families/common/transformer.hpp"

#include <algorithm>

#include "core/model/families/common/checks.hpp"

namespace tandem {

const std::vector<FamilyKey>& transformer_keys() {
  static const std::vector<FamilyKey> kKeys = {
      layers_key(),
      multiple_key("hidden", {1, 1 << 20}, "heads", "Width of a layer; divisible by heads."),
      size_key("heads", {1, 1 << 16}, "Attention heads."),
      vocabulary_key(),
      vocabulary_multiple_key(),
      sequence_key(),
      word_key("attention", {"fused", "unfused"},
               "fused: one kernel, no score matrix in memory. unfused: two batched products with the scores and their "
               "softmax in memory between them, in the network's precision, as software had it before FlashAttention "
               "(2022). The softmax is saved for the backward."),
      flag_key("tied_embedding", true, "Whether the output layer shares the embedding's parameters."),
      size_key("feed_forward", {0, 1 << 22}, 0, "Width of the feed-forward layer; 0: four times hidden."),
      loss_tiles_key()};
  return kKeys;
}

FamilyKey loss_tiles_key() {
  return size_key(
      "loss_tiles", {1, 1 << 16}, 1,
      "Parts of a micro-batch's tokens that pass through the output layer and the loss one after another, "
      "forward and backward at once. More take less device memory at a time, where vocabulary and batch are "
      "large.");
}

void require_tiles(const TransformerSizes& s) {
  require_option(s.loss_tiles >= 1 && s.loss_tiles <= s.tokens(), "loss_tiles",
                 std::to_string(s.loss_tiles) + " is out of range",
                 "allowed: 1 to " + std::to_string(s.tokens()) + ", the tokens of a micro-batch");
}

FamilyKey dropout_key() {
  return number_key("dropout", 0, 0.99, 0,
                    "Probability that a number of the embeddings, and of what each half of a block adds, is zero in "
                    "training. The same numbers for the same seed, step, micro-batch and rank, whatever runs where.");
}

FamilyKey layers_key() { return size_key("layers", {1, kMostLayers}, "Blocks."); }

FamilyKey vocabulary_key() {
  return size_key("vocabulary", {2, kMostVocabulary},
                  "Tokens of the vocabulary. A real run reads a text by bytes, of which 256 (for bert 257, with the "
                  "mask) have room for all. With fewer, the characters (distinct bytes) that occur in the text get "
                  "tokens from 0 on, in order; a text with more of them than the vocabulary is refused.");
}

FamilyKey vocabulary_multiple_key() {
  FamilyKey key = optional_key(
      kVocabularyMultiple, {1, 1024},
      "The output layer has rows behind the vocabulary's, up to the next such multiple, and so has an embedding "
      "that is one with it. They are zero, stay so, and are in no loss, count or checkpoint. Products of other widths "
      "take a GPU up to several times as long in 16 bits. 1: none. By default 64 in 16 bits on a machine with a "
      "GPU (1 where optimizer.epsilon is 0), else 1.");
  key.may_change = true;
  return key;
}

std::int64_t vocabulary_padding(const KeyValues& keys) {
  const std::int64_t multiple = keys.integer_or(kVocabularyMultiple, 1), tokens = keys.integer("vocabulary");
  return (tokens + multiple - 1) / multiple * multiple - tokens;
}

FamilyKey sequence_key() { return size_key("sequence", {1, kMostSize}, "Tokens of a sample."); }

TransformerSizes transformer_sizes(const WorkloadOptions& w) {
  const KeyValues& k = w.keys;
  TransformerSizes s;
  s.batch = w.batch, s.micro_batches = w.micro_batches;
  s.layers = k.integer("layers"), s.hidden = k.integer("hidden"), s.heads = k.integer("heads");
  s.vocabulary = k.integer("vocabulary"), s.sequence = k.integer("sequence");
  s.vocabulary_padding = vocabulary_padding(k);
  s.tied = k.flag("tied_embedding");
  s.fused = k.text("attention") == "fused";
  s.loss_tiles = k.integer_or("loss_tiles", 1);
  s.feed_forward = k.integer_or("feed_forward", 0);
  s.type = w.precision;
  require_size("layers", s.layers, kMostLayers);
  require_size("hidden", s.hidden, kMostSize);
  require_size("heads", s.heads, kMostSize);
  require_size("vocabulary", s.vocabulary, kMostVocabulary);
  require_size("sequence", s.sequence, kMostSize);
  require_divisor("heads", s.heads, "hidden", s.hidden);
  require_tiles(s);
  require_product("hidden, feed_forward", {s.hidden, std::max(s.width(), 4 * s.hidden)});
  require_product("batch, sequence, hidden, feed_forward", {w.batch, s.sequence, std::max(s.width(), 4 * s.hidden)});
  if (!s.fused) require_product("batch, heads, sequence", {w.batch, s.heads, s.sequence, s.sequence});
  require_product("batch, sequence, vocabulary", {w.batch, s.sequence, s.vocabulary + s.vocabulary_padding});
  require_product("vocabulary, hidden", {s.vocabulary, s.hidden});
  return s;
}

}  // namespace tandem
