// The network of a step that denoises, made of the one that is trained to tell noise: what comes out are the latents
// with less of it. Must not know steps.
#pragma once

#include "core/transforms/generation/ddim.hpp"
#include "core/transforms/generation/generating_network.hpp"

namespace tandem {

// What grows are the latents, the tensor of the batch that has noise. Times of the batch are zeros, from which they
// count. `guidance` above 0: without a classifier (Ho and Salimans, 2022, arXiv 2207.12598). `trained` is of twice as
// many images then: noise is told once by the context and once by one of nothing, which the batch's second half is, and
// the difference counts so often. Throws ConfigError for a network that tells no noise.
GeneratingNetwork denoising_network(const Network& trained, const DdimStep& step, double guidance);

}  // namespace tandem
