// The text of an exception for people: LibTorch's without the list of frames that it appends.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

namespace tandem {

inline std::string message_of(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  return torch != nullptr ? torch->what_without_backtrace() : error.what();
}

}  // namespace tandem
