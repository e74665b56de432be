// A person, or what runs this program, asked it to end (exit code 130). `what()` says what became of its work.
#pragma once

#include <stdexcept>

namespace tandem {

class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tandem
