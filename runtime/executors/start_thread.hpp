// Threads that a system may refuse: the refusal is an error for people. Must not know what a thread does.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/errors.hpp"

namespace tandem {

// Throws DeviceError.
template <class Work>
std::thread start_thread(const char* what, Work work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw DeviceError("cannot start a thread for " + std::string(what) + ": " + error.code().message() +
                      "; allow the process more threads (`ulimit -u`) or memory (`ulimit -v`)");
  }
}

}  // namespace tandem
