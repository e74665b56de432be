#include "sim/forked.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <string_view>

#include "core/base/system_calls.hpp"

namespace tandem {
namespace {

struct Fork {
  std::size_t question = 0;
  pid_t pid = -1;
  int pipe = -1;
  std::string told = {};
};

void tell(int pipe, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = uninterrupted([&] { return ::write(pipe, text.data(), text.size()); });
    if (sent <= 0) ::_exit(1);
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

[[noreturn]] void child(pid_t parent, int pipe, const std::function<std::string()>& answer) {
  // It ends with the process that wants to know, and leaves that one's files alone.
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(1);
  // Its complaints are no concern of the user's.
  const int nowhere = ::open("/dev/null", O_WRONLY);
  if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
  try {
    tell(pipe, answer());
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

Fork start(std::size_t question, const std::function<std::string(std::size_t)>& answer) {
  Fork fork{.question = question};
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fork;
  const pid_t self = ::getpid();
  fork.pid = ::fork();
  if (fork.pid == 0) child(self, ends[1], [&] { return answer(question); });
  ::close(ends[1]);
  fork.pipe = ends[0];
  return fork;
}

// False once the answer is whole, or will never be.
bool listen(Fork& fork) {
  std::array<char, 4096> piece{};
  const ssize_t got = uninterrupted([&] { return ::read(fork.pipe, piece.data(), piece.size()); });
  if (got > 0) fork.told.append(piece.data(), static_cast<std::size_t>(got));
  return got > 0;
}

void end(Fork& fork) {
  int status = 0;
  if (fork.pipe >= 0) ::close(fork.pipe);
  const bool done = fork.pid > 0 && uninterrupted([&] { return ::waitpid(fork.pid, &status, 0); }) == fork.pid;
  if (!done || !WIFEXITED(status) || WEXITSTATUS(status) != 0) fork.told.clear();
}

}  // namespace

std::vector<std::string> answer_in_forks(std::size_t count, std::size_t at_a_time,
                                         const std::function<std::string(std::size_t)>& answer) {
  std::vector<std::string> answers(count);
  std::vector<Fork> running;
  for (std::size_t next = 0; next < count || !running.empty();) {
    while (next < count && running.size() < std::max<std::size_t>(at_a_time, 1)) {
      Fork fork = start(next++, answer);
      fork.pipe < 0 ? end(fork) : running.push_back(std::move(fork));
    }
    if (running.empty()) continue;
    std::vector<pollfd> ears;
    for (const Fork& fork : running) ears.push_back({.fd = fork.pipe, .events = POLLIN, .revents = 0});
    uninterrupted([&] { return ::poll(ears.data(), ears.size(), -1); });
    for (std::size_t i = running.size(); i-- > 0;) {
      if (ears[i].revents == 0 || listen(running[i])) continue;
      end(running[i]);
      answers[running[i].question] = std::move(running[i].told);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return answers;
}

}  // namespace tandem
