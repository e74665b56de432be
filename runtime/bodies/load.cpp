// Loads that every family shares: initial parameters, and batches by what they hold.
#include "runtime/bodies/common/load.hpp"

namespace tandem {
namespace {

constexpr BodyEntry kBodies[] = {
    {"parameters.load", load_parameters}, {"next_tokens.load", load_batch},   {"masked_tokens.load", load_batch},
    {"padded_tokens.load", load_batch},   {"images.load", load_batch},        {"synthetic.load", load_batch},
    {"imported.load", load_batch},        {"imported_text.load", load_batch},
};

}  // namespace

std::span<const BodyEntry> load_bodies() { return kBodies; }

}  // namespace tandem
