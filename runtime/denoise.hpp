// `tandem generate` of images: latents out, by a scenario that denoises.
#pragma once

#include "runtime/generate_ranks.hpp"

namespace tandem {

// Returns an exit code. Throws ConfigError for flags that are of texts, and as a training does.
int denoise(const GenerateFlags& flags, const Scenario& scenario);

}  // namespace tandem
