#include "core/workloads/common/transformer.hpp"

#include "core/workloads/common/options.hpp"

namespace tandem {

TransformerSizes transformer_sizes(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  require_size("layers", w.layers, kMostLayers);
  require_size("hidden", w.hidden, kMostSize);
  require_size("heads", w.heads, kMostSize);
  require_size("vocabulary", w.vocabulary, kMostVocabulary);
  require_size("sequence", w.sequence, kMostSize);
  require_option(w.hidden % w.heads == 0, "heads",
                 std::to_string(w.heads) + " does not divide hidden (" + std::to_string(w.hidden) + ")",
                 "allowed: a divisor of hidden");
  require_option(w.loss_tiles >= 1 && w.loss_tiles <= w.batch * w.sequence, "loss_tiles",
                 std::to_string(w.loss_tiles) + " is out of range",
                 "allowed: 1 to " + std::to_string(w.batch * w.sequence) + ", the tokens of a micro-batch");
  require_option(w.attention == "fused" || w.attention == "unfused", "attention",
                 "\"" + w.attention + "\" is not known", "allowed: fused, unfused");
  require_product("hidden", {w.hidden, w.hidden, 4});
  require_product("batch, sequence, hidden", {w.batch, w.sequence, w.hidden, 4});
  if (w.attention == "unfused") require_product("batch, heads, sequence", {w.batch, w.heads, w.sequence, w.sequence});
  require_product("batch, sequence, vocabulary", {w.batch, w.sequence, w.vocabulary});
  require_product("vocabulary, hidden", {w.vocabulary, w.hidden});
  TransformerSizes s;
  s.batch = w.batch, s.sequence = w.sequence, s.hidden = w.hidden, s.heads = w.heads, s.vocabulary = w.vocabulary;
  s.layers = w.layers, s.micro_batches = w.micro_batches;
  s.tied = w.tied_embedding;
  s.fused = w.attention == "fused";
  s.loss_tiles = w.loss_tiles;
  s.type = w.precision;
  return s;
}

}  // namespace tandem
