// An imported network that is trained, as one that reads a text and gives the logits of the token behind it: all that
// serves the loss, its targets and backward alone is left out. Must not know scenarios, steps or LibTorch.
#pragma once

#include <cstdint>

#include "core/model/network.hpp"

namespace tandem {

// The batch has the text first, [samples, length], and then constants of the folder; load fills both
// ("imported_text.load": samples, length, what tokens are below, and each constant's place in the folder's batch).
// Nothing is trained. The last module's output has the logits: [samples, vocabulary]. Throws ConfigError for a network
// whose loss is no cross entropy over [samples, length, vocabulary], that reads more than a text, or draws numbers.
Network with_text_logits(const Network& imported, std::int64_t samples);

}  // namespace tandem
