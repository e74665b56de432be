#include "core/transforms/generation/recomputing_network.hpp"

#include <algorithm>
#include <utility>

#include "core/model/imported/text_logits.hpp"

namespace tandem {

bool recomputes_texts(const Network& trained) {
  return std::any_of(trained.modules.begin(), trained.modules.end(),
                     [](const NetworkModule& m) { return m.module->opaque != nullptr; });
}

GeneratingNetwork recomputing_network(const Network& trained, const GeneratingStep& step, std::int64_t batch) {
  NetworkBuilder builder(trained.family, trained.type);
  builder.network() = with_text_logits(trained, batch);
  const Signal logits = builder.output(0);
  const Signal text{{Source::From::Batch, 0, 0}, builder.network().batch.front().shape};
  builder.freeze();
  builder.module("choice", "choice", [&](ModuleScope& m) {
    const LocalId token = add_choice(m, "token", {m.in("logits", logits)}, step);
    m.output(token);
    m.output(m.call("text", "append_token", {m.in("text", text), token}, {}));
  });
  return {builder.finish(), 0};
}

}  // namespace tandem
