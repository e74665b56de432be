// Hardware profiles as a table for people. Must not know files.
#pragma once

#include <string>
#include <vector>

#include "core/machine/profile.hpp"

namespace tandem {

struct ListedMachine {
  HardwareProfile profile;
  std::string description;  // whole
  std::string numbers;      // where they are from: "measured", "derived" or "datasheet"
};

// A line a machine, its description below: device, memory, host, link, disk, and where its numbers are from.
std::string machines_text(const std::vector<ListedMachine>& machines);

}  // namespace tandem
