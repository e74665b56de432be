#include "cli/simulators.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/child_process.hpp"
#include "cli/siblings.hpp"
#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/base/interrupted.hpp"
#include "core/base/system_calls.hpp"

namespace tandem {

Simulators::One Simulators::start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0)
    throw DeviceError(std::string("cannot make a socket: ") + std::strerror(errno));
  One one;
  one.socket = std::make_unique<LineSocket>(ends[0]);
  ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  try {
    one.process = start_child(sibling("simulate"), {"--serve=" + std::to_string(ends[1])});
  } catch (...) {
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  return one;
}

// Returns how it ended. What it still works at ends with it.
int Simulators::end(One& one) {
  int status = 0;
  ::kill(one.process, SIGKILL);
  uninterrupted([&] { return ::waitpid(one.process, &status, 0); });
  return status;
}

Simulators::Simulators(int count) {
  CHECK(count > 0, count);
  for (int i = 0; i < count; ++i) all_.push_back(start());
}

Simulators::~Simulators() {
  for (One& one : all_) end(one);
}

void Simulators::ask(int simulator, const std::vector<std::string>& arguments) {
  One& one = all_[static_cast<std::size_t>(simulator)];
  CHECK(!one.asked, simulator);
  one.asked = true;
  // One that is gone is seen when it does not answer.
  one.socket->send(
      nlohmann::json{{"arguments", arguments}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::optional<Simulators::Reply> Simulators::reply_of(int simulator) {
  One& one = all_[static_cast<std::size_t>(simulator)];
  if (!one.asked) return std::nullopt;
  const std::optional<std::string> line = one.socket->take(/*waits=*/false);
  if (!line && !one.socket->is_gone()) return std::nullopt;
  one.asked = false;
  Reply reply{simulator, 128 + SIGKILL, "", ""};
  if (line) {
    const nlohmann::json told = nlohmann::json::parse(*line);
    reply = {simulator, told.at("exit_code"), told.at("output"), told.at("errors")};
  } else {  // the kernel, short of memory, may have chosen it
    const int status = end(one);
    if (WIFSIGNALED(status)) reply.exit_code = 128 + WTERMSIG(status);
    one = start();
  }
  return reply;
}

std::optional<Simulators::Reply> Simulators::wait() {
  constexpr int kLookEveryMs = 100;
  for (int round = 0; round < 2; ++round) {
    if (interrupts_.since() > 0) throw Interrupted("interrupted");
    std::vector<pollfd> ends;
    for (int i = 0; i < count(); ++i) {
      if (std::optional<Reply> reply = reply_of(i)) return reply;
      ends.push_back({all_[static_cast<std::size_t>(i)].socket->descriptor(), POLLIN, 0});
    }
    if (round == 0) ::poll(ends.data(), ends.size(), kLookEveryMs);
  }
  return std::nullopt;
}

}  // namespace tandem
