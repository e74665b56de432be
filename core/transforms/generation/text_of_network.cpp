#include "core/transforms/generation/text_of_network.hpp"

#include <algorithm>

#include "core/base/errors.hpp"
#include "core/transforms/generation/recomputing_network.hpp"

namespace tandem {

void refuse_to_generate(const std::string& problem, const std::string& allowed) {
  throw ConfigError("generate: " + problem + "; allowed: " + allowed);
}

void refuse_without_text(const Network& trained) {
  refuse_to_generate("family " + trained.family + " has no tokens that attend to those before them", kDecoders);
}

// The text that grows is what the loss has targets for; families have them next to each other.
std::int32_t text_that_grows(const Network& trained) {
  std::int32_t text = kNone;
  const Call* loss = nullptr;
  const NetworkModule& head = trained.modules.back();
  for (const Call& call : head.module->program)
    if (call.what->primitive.is_own_loss()) loss = &call;
  if (loss == nullptr) refuse_without_text(trained);
  for (std::size_t p = 0; p < head.inputs.size(); ++p) {
    const Source& source = head.inputs[p];
    const bool read = std::find(loss->in.begin(), loss->in.end(), head.module->inputs[p]) != loss->in.end();
    if (source.from != Source::From::Batch || !read) continue;
    const auto targets = static_cast<std::size_t>(source.index);
    if (targets == 0) break;
    const BatchTensor &tokens = trained.batch[targets - 1], &wanted = trained.batch[targets];
    if (tokens.shape == wanted.shape && tokens.shape.type == DType::I64) text = source.index - 1;
  }
  if (text == kNone) refuse_without_text(trained);
  return text;
}

// Tokens go to experts as long as these have room, and those of padding take it first.
std::string needs_one_length(const Network& trained) {
  if (recomputes_texts(trained)) return "what was imported computes whole texts, and takes no padding";
  for (const NetworkModule& m : trained.modules)
    for (const Call& call : m.module->program)
      if (call.what->name == "route" && call.how.integer("capacity") < call.shapes.in[0].rows())
        return "padding would take room of others' tokens at the experts of " + m.name;
  return "";
}

}  // namespace tandem
