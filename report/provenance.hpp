// Where a hardware profile's figures come from, for people. Must not know runs.
#pragma once

#include <string>

#include "core/machine/profile.hpp"

namespace tandem {

// "measured on NVIDIA H200", "from datasheets and estimates".
std::string provenance(const HardwareProfile& profile);

}  // namespace tandem
