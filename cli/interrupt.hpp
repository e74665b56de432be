// How signals that end this process are shared out. For those who wait for other processes or threads; all else is in
// cli.hpp.
#pragma once

namespace tandem {

// SIGINTs and SIGTERMs so far, and the last one's number. What a parent passes on counts once.
int interrupts_so_far();
int last_interrupt();

// While one of these lives, a SIGINT or SIGTERM is counted and nothing else: its owner answers it.
class InterruptCount {
 public:
  InterruptCount();
  ~InterruptCount();
  InterruptCount(const InterruptCount&) = delete;
  InterruptCount& operator=(const InterruptCount&) = delete;
  int since() const { return interrupts_so_far() - before_; }

 private:
  int before_;
};

// The value that a signal carries which was passed on: a terminal sends Ctrl-C to parent and child alike, so the child
// may have it already.
inline constexpr int kPassedOn = 0x7a6e6d;

// Ends the process now, whatever its threads do: removes its temporary files and says why.
[[noreturn]] void end_process(int exit_code, const char* text);

}  // namespace tandem
