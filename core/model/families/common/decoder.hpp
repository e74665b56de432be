// Decoders of Llama's kind (Touvron et al. 2023): RMS norms before each half of a block, rotary positions,
// grouped-query heads, no biases; with options that cover Mistral, Qwen 2.5 and Gemma 2. What the second half computes
// is the family's own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/model/families/common/transformer.hpp"
#include "core/model/network.hpp"

namespace tandem {

struct DecoderSizes : TransformerSizes {
  explicit DecoderSizes(const WorkloadOptions& w);
  std::int64_t key_heads = 0, head_size = 0, window = 0;
  double theta = 10000, epsilon = 1e-5, attention_softcap = 0, output_softcap = 0, query_scale = 0;
  bool parallel = false;  // both halves of a block read one norm, and are added to it together
  bool qkv_bias = false, alternates = false, post_norms = false, scales_embedding = false, unit_offset = false;
  std::string gate;  // activation of the feed-forward
};

const std::vector<FamilyKey>& decoder_keys();

Signal decoder_embedding(NetworkBuilder& n, const DecoderSizes& s, const Signal& tokens,
                         const std::string& name = "embedding");
// `second`: of the normed value, what is added to it; as "feed_forward" of a kind.
using SecondHalf = std::function<LocalId(ModuleScope& m, LocalId norm)>;
struct DecoderBlockOptions {
  std::string kind = "block";
  SecondHalf between = nullptr;  // of the value as the first half leaves it, what is added to it; none: nothing
};
Signal decoder_block(NetworkBuilder& n, const DecoderSizes& s, std::int64_t index, const Signal& x,
                     const SecondHalf& second, const DecoderBlockOptions& options = {});
// `embedding`: the module whose table the output layer shares, where it is tied.
void decoder_head(NetworkBuilder& n, const DecoderSizes& s, const Signal& x, const Signal& targets,
                  const std::string& embedding = "embedding");

}  // namespace tandem
