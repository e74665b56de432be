// The network of a step that generates without a cache: whole texts come in, and come out longer by a token. Must not
// know steps.
#pragma once

#include "core/transforms/generation/generating_network.hpp"

namespace tandem {

// Its modules are given as a whole, so that no keys and values are known that a cache could keep.
bool recomputes_texts(const Network& trained);

// `trained`: of such modules, and of texts as long as the step's. Its last module gives the tokens that it chose, and
// the texts with them. Throws ConfigError for a network that has no text that grows.
GeneratingNetwork recomputing_network(const Network& trained, const GeneratingStep& step, std::int64_t batch);

}  // namespace tandem
