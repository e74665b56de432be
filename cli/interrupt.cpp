// What Ctrl-C and a polite kill do.
#include "cli/interrupt.hpp"

#include <unistd.h>

#include <csignal>
#include <cstring>

#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "report/temporary_file.hpp"

namespace tandem {
namespace {

std::atomic<bool> claimed{false};
std::atomic<bool> requested{false};  // taken back by who has seen it
std::atomic<bool> seen{false};
std::atomic<int> counted{0}, last{0}, counting{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "the handler below must not lock");

void on_signal(int signal, siginfo_t* info, void*) {
  const bool passed_on = info != nullptr && info->si_code == SI_QUEUE && info->si_value.sival_int == kPassedOn;
  if (passed_on && counted > 0) return;
  last = signal;
  ++counted;
  if (counting > 0) return;
  if (claimed && !seen.exchange(true)) {
    requested = true;
    return;
  }
  end_process(kInterrupted, "\ntandem: interrupted; files that were not complete are removed\n");
}

}  // namespace

void end_process(int exit_code, const char* text) {
  remove_temporary_files();
  // Nothing can be done if the message cannot be written.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  ::_exit(exit_code);
}

int interrupts_so_far() { return counted; }
int last_interrupt() { return last; }

InterruptCount::InterruptCount() : before_(interrupts_so_far()) { ++counting; }
InterruptCount::~InterruptCount() { --counting; }

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
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
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
