// Modules of GPT-2's decoder: learned positions, norms before attention and feed-forward, gelu (tanh), causal
// attention, mean next-token cross entropy; and by options those of GPT-J, OPT, BLOOM and Falcon. Buckets: embedding
// (tokens and positions), one a block, head (norm, and the output weight unless it is the token embedding).
#pragma once

#include <string>
#include <vector>

#include "core/model/families/common/transformer.hpp"
#include "core/model/network.hpp"

namespace tandem {

enum class GptPositions : std::uint8_t { Learned, Rotary, Alibi };
// Whether a block's halves follow one another, or read the same, by one norm or by one each.
enum class GptResidual : std::uint8_t { Sequential, Parallel, ParallelTwoNorms };

struct GptSizes : TransformerSizes {
  GptSizes() = default;
  explicit GptSizes(const TransformerSizes& sizes) : TransformerSizes(sizes) {}
  // All that gpt_keys() declares.
  explicit GptSizes(const WorkloadOptions& w);
  GptPositions positions = GptPositions::Learned;
  GptResidual residual = GptResidual::Sequential;
  std::int64_t key_heads = 0, rotary_dims = 0;  // 0: as many as heads, as a head has
  bool rotary_neighbours = false;               // pairs are (2i, 2i + 1)
  bool attention_bias = true, feed_forward_bias = true, embedding_norm = false, output_bias = false;
  double dropout = 0;
  std::string activation = "gelu_tanh";
  // Of a sequence that goes on from another: the place of its first token, rows of the caches that blocks have of keys
  // and values (0: there are none, and nothing comes before), and of the positions' table (0: as many as the sequence).
  std::int64_t position = 0, capacity = 0, places = 0;
  // Queries, keys and values come of one product, and nothing turns or hides them but the order of tokens.
  bool has_plain_attention() const { return positions == GptPositions::Learned && key_heads == 0 && attention_bias; }
  bool has_plain_blocks() const;  // GPT-2's, which can be cut into tiles
};

// Beside transformer_keys().
const std::vector<FamilyKey>& gpt_keys();

Signal gpt_embedding(NetworkBuilder& n, const GptSizes& s, const Signal& tokens);
Signal gpt_block(NetworkBuilder& n, const GptSizes& s, const std::string& name, const Signal& x);
// All of a network's, one after another.
Signal gpt_blocks(NetworkBuilder& n, const GptSizes& s, const Signal& x);
// The block in 2 `tiles` modules, each with a bucket of its own: of attention some heads, of the feed-forward some
// columns. The first of a half norms what all of them read; each adds to the sum.
Signal gpt_tiled_block(NetworkBuilder& n, const TransformerSizes& s, std::int64_t tiles, const std::string& name,
                       const Signal& x);
void gpt_head(NetworkBuilder& n, const GptSizes& s, const Signal& x, const Signal& targets);
// Of the last of one sequence's tokens the likeliest next one.
Signal gpt_next_token(NetworkBuilder& n, const GptSizes& s, const Signal& x);

// Zero with that probability, else scaled; as it is for 0. `stream`: one for each call of a module.
LocalId dropped(ModuleBuilder& m, const std::string& name, LocalId x, double rate, std::int64_t stream);

}  // namespace tandem
