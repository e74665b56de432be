#include "core/base/errors.hpp"

#include <sstream>

namespace tandem {

std::vector<std::string> ConfigError::findings() const {
  std::vector<std::string> lines;
  std::istringstream in(what());
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace tandem
