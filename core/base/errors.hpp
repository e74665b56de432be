// Errors that people cause or meet: bad input (exit 2), does not fit (exit 3), the world failed (exit 4).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tandem {

// `what()` is the full line: "file:line:column: key: what is wrong; what is allowed".
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Says what, where, how many bytes and what would fit.
class DoesNotFit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A device or the system failed: which command, what to do next.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tandem
