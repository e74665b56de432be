#include "cli/checkpoint_request.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "core/base/errors.hpp"

namespace tandem {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

}  // namespace

void claim_checkpoint_requests() {
  struct sigaction action {};
  action.sa_handler = [](int) { requested = true; };
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  if (::sigaction(SIGUSR1, &action, nullptr) != 0)
    throw DeviceError(std::string("cannot answer SIGUSR1: ") + std::strerror(errno));
}

bool take_checkpoint_request() { return requested.load() && requested.exchange(false); }

}  // namespace tandem
