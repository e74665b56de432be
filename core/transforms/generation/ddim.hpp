// The steps of a denoising diffusion implicit model from noise to an image, without new noise (Song et al., ICLR 2021,
// arXiv 2010.02502, equation 12 with sigma 0). Must not know networks.
#pragma once

#include <cstdint>

namespace tandem {

// Training steps of noise, most of it at the last.
inline constexpr std::int64_t kNoiseTimes = 1000;

struct DdimStep {
  std::int64_t time = 0;         // which the network is told
  double kept = 1, removed = 0;  // the next latents: kept times these, plus removed times the noise that it tells
};

// Step `index`, from 0, of `steps`, below kNoiseTimes. Times are evenly spaced, and variances those of Stable Diffusion
// 1.5: scaled_linear from 0.00085 to 0.012, steps_offset 1, set_alpha_to_one false (its scheduler_config.json).
DdimStep ddim_step(std::int64_t steps, std::int64_t index);

}  // namespace tandem
