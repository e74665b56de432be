// Decoder-only transformer with GPT-2's blocks.
#include "core/workloads/common/gpt_modules.hpp"
#include "core/workloads/common/language.hpp"
#include "core/workloads/common/network_plan.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/common/training_source.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {
    joined(
        {transformer_keys(),
         {size_key("linear_tiles", {1, 1024}, 1,
                   "Parts of a block's attention, by heads, and of its feed-forward, by width, each an op with "
                   "parameters of its own, one after another. A device then holds a part of a block's parameters and "
                   "gradients at a time (ZeRO-Infinity, section 5.1.3).")}}),
    recomputing_keys()};

void check_tiles(const TransformerSizes& s, std::int64_t tiles) {
  require_option(tiles >= 1 && s.heads % tiles == 0, "linear_tiles",
                 std::to_string(tiles) + " does not divide heads (" + std::to_string(s.heads) + ")",
                 "allowed: a divisor of heads");
  require_option(tiles == 1 || 2 * tiles * s.layers <= kMostLayers, "layers, linear_tiles",
                 std::to_string(2 * tiles * s.layers) + " tiles are too many",
                 "allowed: at most " + std::to_string(kMostLayers));
}

Network network_of(const TransformerSizes& s, std::int64_t tiles) {
  NetworkBuilder n("gpt", s.type);
  const auto [tokens, targets] = token_batch(n, s);
  Signal x = gpt_embedding(n, s, tokens);
  n.network().block_modules = tiles == 1 ? 1 : 2 * tiles;
  for (std::int64_t i = 0; i < s.layers; ++i) {
    const std::string name = indexed("block", i);
    x = tiles == 1 ? gpt_block(n, s, name, x) : gpt_tiled_block(n, s, tiles, name, x);
  }
  gpt_head(n, s, x, targets);
  return n.finish();
}

std::unique_ptr<StepSource> make_gpt(const Scenario& scenario, const GraphRequest& request) {
  require_training_options(scenario);
  const TransformerSizes s = transformer_sizes(scenario);
  const std::int64_t tiles = scenario.workload.keys.integer("linear_tiles");
  check_tiles(s, tiles);
  const Network network = network_of(s, tiles);
  return std::make_unique<TrainingSource>(network_plan(network, scenario, token_load("next_tokens", s)), scenario,
                                          request);
}

}  // namespace
}  // namespace tandem

TANDEM_WORKLOAD(gpt, make_gpt, kKeys, "Decoder-only transformer, trained on the next token")
