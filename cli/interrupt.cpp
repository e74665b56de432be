// What Ctrl-C and a polite kill do.
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "cli/atomic_file.hpp"
#include "cli/cli.hpp"
#include "core/base/errors.hpp"

namespace tandem {
namespace {

std::atomic<bool> claimed{false};
std::atomic<bool> requested{false};  // taken back by who has seen it
std::atomic<bool> seen{false};
static_assert(std::atomic<bool>::is_always_lock_free, "the handler below must not lock");

void on_signal(int) {
  if (claimed && !seen.exchange(true)) {
    requested = true;
    return;
  }
  remove_temporary_files();
  constexpr char kText[] = "\ntandem: interrupted; files that were not complete are removed\n";
  // Nothing can be done if the message cannot be written.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  ::_exit(kInterrupted);
}

}  // namespace

std::atomic<bool>& claim_interrupts() {
  claimed = true;
  return requested;
}

void hold_interrupts(bool hold) {
  sigset_t signals;
  if (sigemptyset(&signals) != 0 || sigaddset(&signals, SIGINT) != 0 || sigaddset(&signals, SIGTERM) != 0 ||
      sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &signals, nullptr) != 0)
    throw DeviceError(std::string("cannot hold interrupts: ") + std::strerror(errno));
}

void install_interrupt_handler() {
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  if (sigemptyset(&action.sa_mask) != 0 || sigaction(SIGINT, &action, nullptr) != 0 ||
      sigaction(SIGTERM, &action, nullptr) != 0)
    throw DeviceError(std::string("cannot install the interrupt handler: ") + std::strerror(errno));
  // A reader that goes away (| head) is a failed write, reported as any other.
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR)
    throw DeviceError(std::string("cannot ignore broken pipes: ") + std::strerror(errno));
  // So is a file that grows beyond the process's limit.
  if (std::signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
    throw DeviceError(std::string("cannot ignore the signal of the file size limit: ") + std::strerror(errno));
  hold_interrupts(false);  // by who has become this program
}

}  // namespace tandem
