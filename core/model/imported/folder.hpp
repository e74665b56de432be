// Files of a folder from a stranger: only what lies in it is opened. Must not know what is in them.
#pragma once

#include <string>

namespace tandem {

// The path of `name` in the folder. Throws ConfigError where it leads out of it, as a link may.
std::string file_in(const std::string& folder, const std::string& name);

}  // namespace tandem
