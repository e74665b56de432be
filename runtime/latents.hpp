// What a run that denoises has made: the latents of all its images. Must not know where they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/scenario/scenario.hpp"
#include "runtime/train.hpp"

namespace tandem {

struct Latents {
  DType type = DType::F32;          // as they were computed
  std::vector<std::int64_t> shape;  // [images, channels, height, width], by micro-batch
  std::vector<std::byte> bytes;
};

// The run is over, to its last step.
Latents latents_of(Training& training, const Scenario& scenario);
// A safetensors file of one tensor, "latents".
std::string safetensors_text(const Latents& latents);

}  // namespace tandem
