#include "cli/attempts.hpp"

#include <cstdio>
#include <utility>

#include "core/base/errors.hpp"
#include "report/summary.hpp"

namespace tandem {

void Attempts::operator()(const std::function<void()>& action) {
  try {
    action();
  } catch (const DeviceError& error) {
    failures_.emplace_back(error.what());
  }
}

void Attempts::finish() {
  const std::vector<std::string> failures = std::exchange(failures_, {});
  if (failures.empty()) return;
  for (std::size_t i = 0; i + 1 < failures.size(); ++i)
    std::fprintf(stderr, "tandem: %s\n", terminal_text(failures[i]).c_str());
  throw DeviceError(failures.back());
}

}  // namespace tandem
