// What an exception says, for people, where a thread must go on: memory may be what lacks. Must not know commands.
#pragma once

#include <exception>
#include <new>
#include <string>

namespace tandem {

inline constexpr const char* kOutOfMemory =
    "out of memory: give the process more memory, or lower limits.host_bytes in the scenario";

// Of the exception that is being handled. Where there is no memory for its text, a word that needs none.
inline std::string failure_text() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return kOutOfMemory;
    } catch (const std::exception& error) {
      return error.what();
    } catch (...) {
      return "an exception without a text";
    }
  } catch (...) {
    return "out of memory";
  }
}

inline std::string copy_or_less(const std::string& text) noexcept {
  try {
    return text;
  } catch (...) {
    return "out of memory";
  }
}

}  // namespace tandem
