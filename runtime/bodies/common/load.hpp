// Bodies that bring bytes in: initial parameters and optimizer states, and batches. Must not know networks.
#pragma once

#include <cstdint>

#include "runtime/executors/body.hpp"

namespace tandem {

// Writes: a parameter bucket or a rank's part of it, then optimizer states. Parameters get their initial values (a
// master copy those of fp32, from which a 16-bit parameter is rounded; in bf16 the two halves of those), moments zero.
std::int64_t load_parameters(BodyCall& call);
// Throws DeviceError for a token that the embedding has no row for: the data is not of this vocabulary.
void check_tokens(const std::int64_t* tokens, std::int64_t count, std::int64_t vocabulary);
// Write inputs and targets. Work::sizes: batch, sequence, vocabulary.
std::int64_t load_next_token_batch(BodyCall& call);
std::int64_t load_masked_token_batch(BodyCall& call);
// Work::sizes: batch, inputs.
std::int64_t load_image_batch(BodyCall& call);

}  // namespace tandem
