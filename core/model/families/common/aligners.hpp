// Aligners: what makes an encoder's tokens rows that a language model reads. Must not know the encoder.
#pragma once

#include <string>

#include "core/model/families/common/modalities.hpp"
#include "core/model/network.hpp"

namespace tandem {

struct AlignerOptions {
  // linear; mlp: two layers with gelu between (LLaVA 1.5, arXiv 2310.03744, section 3.3); resampler: learned queries
  // that attend to the tokens and to themselves (Flamingo, arXiv 2204.14198, section 3.1.1), in one layer (Qwen-VL,
  // arXiv 2308.12966).
  std::string kind = "mlp";
  std::int64_t queries = 1, heads = 1;  // a resampler's
  std::int64_t hidden = 1;              // of the language model
};

// [items * tokens, hidden]: a resampler has `queries` tokens of an item, the others as many as the features.
Signal aligner(NetworkBuilder& n, const std::string& name, const Features& features, const AlignerOptions& options);

}  // namespace tandem
