// Errors that people cause or meet: bad input (exit 2), does not fit (exit 3), the world failed (exit 4).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace tandem {

// What is wrong with input: `what()` is a full line, "file:line:column: key: what is wrong; what is allowed", and where
// several things are wrong, a line for each. No line holds a line end of its own.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  std::vector<std::string> findings() const;  // the lines
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
