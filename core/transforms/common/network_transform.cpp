#include "core/transforms/common/network_transform.hpp"

#include <fnmatch.h>

namespace tandem {

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace tandem
