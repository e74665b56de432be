#include "cli/serve.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/cli.hpp"

namespace tandem {
namespace {

int run_request(const std::string& line, const std::function<int(int, char**)>& body) {
  const nlohmann::json request = nlohmann::json::parse(line, nullptr, false);
  if (!request.is_array()) return kBadInput;
  std::vector<std::string> words{"tandem-simulate"};
  for (const nlohmann::json& word : request) words.push_back(word.is_string() ? word.get<std::string>() : "");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return run_main(static_cast<int>(pointers.size()), pointers.data(), body);
}

int in_a_child(const std::string& line, int socket, const std::function<int(int, char**)>& body) {
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return kDeviceFailure;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kInterrupted);
    ::close(socket);
    std::_Exit(run_request(line, body));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return kDeviceFailure;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool send_all(int socket, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

int serve(int socket, bool idle, const std::function<int(int, char**)>& body) {
  constexpr int kLowest = 19;
  if (idle) ::setpriority(PRIO_PROCESS, 0, kLowest);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0 || ::dup2(nowhere, STDOUT_FILENO) < 0 || ::dup2(nowhere, STDERR_FILENO) < 0) return kDeviceFailure;
  std::signal(SIGINT, SIG_IGN);  // the process that asks answers a terminal's
  std::string text;
  for (std::array<char, 4096> buffer{};;) {
    const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return kDone;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      const std::string line = text.substr(0, end);
      text.erase(0, end + 1);
      if (!send_all(socket, std::to_string(in_a_child(line, socket, body)) + "\n")) return kDone;
    }
  }
}

}  // namespace tandem
