// Batches of seeded noise, so that calibration needs no corpus. Must not know ops.
#pragma once

#include <memory>

#include "runtime/data.hpp"

namespace tandem {

// Tokens are below `vocabulary`.
std::unique_ptr<DataSource> make_noise_data(std::uint64_t seed, std::int64_t vocabulary);

}  // namespace tandem
