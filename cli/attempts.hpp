// Things to do of which one that fails does not keep the others from being done: the files that a run writes.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tandem {

class Attempts {
 public:
  // Does it now. A DeviceError is kept for finish().
  void operator()(const std::function<void()>& action);
  // Throws DeviceError if any failed: the last; says the others on standard error.
  void finish();

 private:
  std::vector<std::string> failures_;
};

}  // namespace tandem
