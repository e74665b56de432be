// Decoder-only transformer with GPT-2's blocks (Radford et al. 2019), and by options those of GPT-J, OPT, BLOOM and
// Falcon.
#include "core/model/families/common/family.hpp"
#include "core/model/families/common/gpt_modules.hpp"
#include "core/model/families/common/language.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {
    joined(
        {transformer_keys(),
         gpt_keys(),
         {dropout_key(),
          size_key("linear_tiles", {1, 1024}, 1,
                   "Parts of a block's attention, by heads, and of its feed-forward, by width, each an op with "
                   "parameters of its own, one after another. A device then holds a part of a block's parameters and "
                   "gradients at a time (ZeRO-Infinity, section 5.1.3).")}}),
    recomputing_keys(),
    {},
    {{"layers", 2}, {"hidden", 48}, {"heads", 3}, {"vocabulary", 257}, {"sequence", 40}}};

void check_tiles(const GptSizes& s, std::int64_t tiles) {
  if (tiles == 1) return;
  require_divisor("linear_tiles", tiles, "heads", s.heads);
  require_option(s.width() % tiles == 0, "linear_tiles, feed_forward",
                 std::to_string(tiles) + " does not divide the feed-forward width (" + std::to_string(s.width()) + ")",
                 "allowed: a divisor of it");
  require_option(2 * tiles * s.layers <= kMostLayers, "layers, linear_tiles",
                 std::to_string(2 * tiles * s.layers) + " tiles are too many",
                 "allowed: at most " + std::to_string(kMostLayers));
  require_option(s.has_plain_blocks(), "linear_tiles, activation, positions, key_heads, residual, dropout",
                 "only GPT-2's blocks can be cut into tiles", "allowed: linear_tiles 1");
}

Network gpt(const WorkloadOptions& w) {
  const GptSizes s(w);
  const std::int64_t tiles = w.keys.integer("linear_tiles");
  check_tiles(s, tiles);
  NetworkBuilder n("gpt", s.type);
  const auto [tokens, targets] = token_batch(n, s, "next_tokens");
  Signal x = gpt_embedding(n, s, tokens);
  n.network().block_modules = tiles == 1 ? 1 : 2 * tiles;
  if (tiles == 1) x = gpt_blocks(n, s, x);
  for (std::int64_t i = 0; tiles > 1 && i < s.layers; ++i) x = gpt_tiled_block(n, s, tiles, indexed("block", i), x);
  gpt_head(n, s, x, targets);
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(gpt, gpt, kKeys, "Decoder-only transformer (GPT-2, GPT-J, OPT, BLOOM, Falcon), trained on the next token")
