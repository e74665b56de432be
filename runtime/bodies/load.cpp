// Loads that every family shares: initial parameters, and batches by what they hold.
#include "runtime/bodies/common/load.hpp"

namespace tandem {
namespace {

constexpr BodyEntry kBodies[] = {
    {"parameters.load", load_parameters},
    {"next_tokens.load", load_next_token_batch},
    {"masked_tokens.load", load_masked_token_batch},
    {"images.load", load_image_batch},
};

}  // namespace

std::span<const BodyEntry> load_bodies() { return kBodies; }

}  // namespace tandem
