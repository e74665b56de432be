// All commands and flags as a manual page, in roff.
#pragma once

#include <string>

#include "apps/declarations.hpp"

namespace tandem {

std::string manual_page(const Declarations& declarations);

}  // namespace tandem
