// Bodies that bring bytes in: initial parameters and optimizer states, and batches. Must not know networks.
#pragma once

#include <cstdint>

#include "runtime/data.hpp"
#include "runtime/executors/body.hpp"

namespace tandem {

// Of a batch's load or input: the last size says whether it is of held-out data.
BatchKey key_of(const BodyCall& call);
// Writes: a parameter bucket or a rank's part of it, then optimizer states. Parameters get their initial values (a
// master copy those of fp32, from which a 16-bit parameter is rounded; in bf16 the two halves of those), moments zero.
std::int64_t load_parameters(BodyCall& call);
// Writes a batch's tensors: what Work::body says (batches.hpp).
std::int64_t load_batch(BodyCall& call);

}  // namespace tandem
