// The YAML files of a folder. Must not know what is in them.
#pragma once

#include <string>
#include <vector>

namespace tandem {

// Names without extension, sorted; empty where there is no such folder.
std::vector<std::string> yaml_stems(const std::string& folder);

}  // namespace tandem
