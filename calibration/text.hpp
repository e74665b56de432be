// printf to a string. (LibTorch's headers carry an fmt of their own that hides the system's.)
#pragma once

#include <string>

namespace tandem {

[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...);

}  // namespace tandem
