// Pictures that a device decodes and scales. Must not know files, nor which library decodes.
#pragma once

#include <vector>

#include "runtime/executors/body.hpp"
#include "runtime/sample_data.hpp"

namespace tandem {

// The op's read holds `slots`, each of `slot_bytes`. Decoded pixels differ from the host's by what two decoders differ
// by, a few of 255 at edges of colour; scaling is the host's, to the bit. Throws DeviceError.
void decode_on_device(BodyCall& call, const MediaShape& shape, const std::vector<SlotHeader>& slots,
                      std::int64_t slot_bytes);

}  // namespace tandem
