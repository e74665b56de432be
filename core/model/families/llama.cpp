// Llama 2 and 3 (Touvron et al. 2023, arXiv 2307.09288; Grattafiori et al. 2024, arXiv 2407.21783), and by options
// Mistral 7B (arXiv 2310.06825), Qwen 2.5 (arXiv 2412.15115), Gemma (arXiv 2403.08295), Gemma 2 (arXiv 2408.00118) and
// PaLM (arXiv 2204.02311).
#include "core/model/families/common/checks.hpp"
#include "core/model/families/common/decoder.hpp"
#include "core/model/families/common/family.hpp"
#include "core/model/families/common/language.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {
    joined({decoder_keys(),
            {word_key("residual", {"sequential", "parallel"},
                      "Whether the halves of a block follow one another, or read one norm and are "
                      "added together (PaLM).")}}),
    recomputing_keys(),
    {},
    {{"layers", 2},
     {"hidden", 48},
     {"heads", 6},
     {"key_heads", 2},
     {"feed_forward", 88},
     {"vocabulary", 257},
     {"sequence", 37}}};

Network llama(const WorkloadOptions& w) {
  DecoderSizes s(w);
  s.parallel = w.keys.text("residual") == "parallel";
  require_option(!s.parallel || !s.post_norms, "residual, post_norms", "halves that are added together have no norms",
                 "allowed: post_norms false, or residual sequential");
  NetworkBuilder n("llama", s.type);
  const auto [tokens, targets] = token_batch(n, s, "next_tokens");
  Signal x = decoder_embedding(n, s, tokens);
  for (std::int64_t i = 0; i < s.layers; ++i)
    x = decoder_block(n, s, i, x, [&](ModuleScope& m, LocalId norm) {
      return gated_feed_forward(m, norm, s.feed_forward, s.hidden, s.gate);
    });
  decoder_head(n, s, x, targets);
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(llama, llama, kKeys, "Decoder of Llama's kind (Mistral, Qwen, Gemma, PaLM), trained on the next token")
