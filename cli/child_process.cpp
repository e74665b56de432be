#include "cli/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "cli/cli.hpp"
#include "cli/interrupt.hpp"
#include "core/base/errors.hpp"
#include "core/base/interrupted.hpp"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// A signal may come just before the wait, and then does not end it.
constexpr std::chrono::milliseconds kLookEvery{10};
// For what a child still has to save or to remove, within the ten seconds that an interrupt may take.
constexpr std::chrono::seconds kGrace{9};

[[noreturn]] void fail(const std::string& what, int error) { throw DeviceError(what + ": " + std::strerror(error)); }

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// Between fork() and exec(): nothing here may allocate or lock. Tells `pipe_end` why it failed.
[[noreturn]] void become_program(const char* program, char* const* words, const ChildOutput& to, pid_t parent,
                                 int pipe_end) {
  constexpr mode_t kOwnerOnly = 0600;
  bool ready = ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
  if (::getppid() != parent) ::_exit(kInterrupted);  // it ended before the line above
  if (ready && to.errors >= 0) ready = ::dup2(to.errors, STDERR_FILENO) >= 0;
  if (ready && !to.output.empty()) {
    const int file = ::open(to.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, kOwnerOnly);
    ready = file >= 0 && (file == STDOUT_FILENO || ::dup2(file, STDOUT_FILENO) >= 0);
    if (ready && file != STDOUT_FILENO) ::close(file);
  }
  if (ready) ::execv(program, words);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(pipe_end, &error, sizeof error);
  ::_exit(kDeviceFailure);
}

// True at the pipe's end.
bool read_some(int pipe, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(pipe, buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
}

// Reads what is there, or waits for a moment.
bool wait_a_moment(int pipe, std::string& text) {
  pollfd end{pipe, POLLIN, 0};
  return ::poll(&end, pipe >= 0 ? 1 : 0, static_cast<int>(kLookEvery.count())) > 0 && read_some(pipe, text);
}

// Answers interrupts while a child is waited for.
class Ending {
 public:
  explicit Ending(pid_t child) : child_(child) {}
  bool begun() const { return count_.since() > 0; }
  void look(bool stops, bool goes_on) {
    stopped_ = (stopped_ || stops) && !goes_on;
    if (count_.since() > 0 && !passed_on_) {
      passed_on_ = true;
      until_ = Clock::now() + kGrace;
      sigval value{};
      value.sival_int = kPassedOn;
      ::sigqueue(child_, last_interrupt(), value);
    }
    // One that is stopped hears nothing.
    if (count_.since() > 1 || (passed_on_ && (stopped_ || Clock::now() >= until_))) ::kill(child_, SIGKILL);
  }

 private:
  pid_t child_;
  InterruptCount count_;
  bool passed_on_ = false, stopped_ = false;
  Clock::time_point until_;
};

}  // namespace

pid_t start_child(const std::string& program, std::vector<std::string> arguments, const ChildOutput& to) {
  arguments.insert(arguments.begin(), program);
  const std::vector<char*> words = pointers(arguments);
  std::array<int, 2> pipe{-1, -1};  // closed without a word once the program runs
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) fail("cannot make a pipe", errno);
  const pid_t self = ::getpid();
  hold_interrupts(true);  // the new program has no handler yet
  const pid_t child = ::fork();
  const int fork_error = errno;
  if (child == 0) become_program(program.c_str(), words.data(), to, self, pipe[1]);
  hold_interrupts(false);
  ::close(pipe[1]);
  int error = 0;
  ssize_t told = 0;
  while (child > 0 && (told = ::read(pipe[0], &error, sizeof error)) < 0 && errno == EINTR) continue;
  ::close(pipe[0]);
  if (child < 0) fail("cannot start " + program, fork_error);
  if (told != static_cast<ssize_t>(sizeof error)) return child;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  fail("cannot start " + program, error);
}

ChildEnd wait_for_child(pid_t child, int pipe) {
  ChildEnd end;
  Ending ending(child);
  for (bool open = pipe >= 0;;) {
    const pid_t news = ::waitpid(child, &end.status, WNOHANG | WUNTRACED | WCONTINUED);
    if (news < 0 && errno != EINTR) fail("cannot wait for a program", errno);
    if (news == child && (WIFEXITED(end.status) || WIFSIGNALED(end.status))) break;
    ending.look(news == child && WIFSTOPPED(end.status), news == child && WIFCONTINUED(end.status));
    if (wait_a_moment(open ? pipe : -1, end.errors)) open = false;
  }
  // Of what it wrote last. A process of its own may still have the other end.
  if (pipe >= 0) {
    ::fcntl(pipe, F_SETFL, O_NONBLOCK);
    for (std::size_t before = end.errors.size() + 1; before != end.errors.size();) {
      before = end.errors.size();
      if (read_some(pipe, end.errors)) break;
    }
  }
  if (ending.begun()) throw Interrupted("interrupted; files that were not complete are removed");
  return end;
}

}  // namespace tandem
