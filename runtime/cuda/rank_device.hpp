// Which GPU of the host a rank takes. Must not know CUDA.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "core/base/ids.hpp"

namespace tandem {

// CUDA_VISIBLE_DEVICES of a rank's process: its own GPU first, which is then number 0, and those of the others behind
// it. `given`: the variable as the user has it; "" for all GPUs of the host. Throws DeviceError where that names fewer
// GPUs than there are ranks.
std::string visible_devices(const std::string& given, Rank rank, Rank ranks);

// Of ranks that torchrun has started, this one's number on its host, and how many there are; else as they are.
// `variable`: one of the environment, null where it is not set. What a run of one process has in there says nothing of
// the ranks that it starts itself.
std::pair<Rank, Rank> on_this_host(Rank rank, Rank ranks, const std::function<const char*(const char*)>& variable);

}  // namespace tandem
