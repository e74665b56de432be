// Decoded pictures and sounds as numbers of the network, by LibTorch, on a device. Must not know files.
#pragma once

#include <cstdint>

#include "runtime/executors/body.hpp"
#include "runtime/sample_data.hpp"

namespace tandem {

// The formulas of runtime/media's normalise and LogMel: pictures differ from theirs by a rounding or two, spectrograms
// by 1e-4 at most.
std::int64_t transform_on_device(BodyCall& call, const MediaShape& shape, const MediaOptions& options);

}  // namespace tandem
