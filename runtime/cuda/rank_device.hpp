// Which GPU of the host a rank takes. Must not know CUDA.
#pragma once

#include <string>

#include "core/base/ids.hpp"

namespace tandem {

// CUDA_VISIBLE_DEVICES of a rank's process: its own GPU first, which is then number 0, and those of the others behind
// it. `given`: the variable as the user has it; "" for all GPUs of the host. Throws DeviceError where that names fewer
// GPUs than there are ranks.
std::string visible_devices(const std::string& given, Rank rank, Rank ranks);

}  // namespace tandem
