// Bodies that bring bytes in: initial parameters and optimizer states, and batches. Must not know networks.
#pragma once

#include <cstdint>

#include "runtime/executors/body.hpp"

namespace tandem {

// Writes: a parameter bucket, then optimizer states. Parameters get their initial values, states zero.
std::int64_t load_parameters(BodyCall& call);
// Write inputs and targets. Work::sizes: batch, sequence, vocabulary.
std::int64_t load_next_token_batch(BodyCall& call);
std::int64_t load_masked_token_batch(BodyCall& call);
// Work::sizes: batch, inputs.
std::int64_t load_image_batch(BodyCall& call);

}  // namespace tandem
