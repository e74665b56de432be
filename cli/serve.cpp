#include "cli/serve.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/line_socket.hpp"
#include "core/base/system_calls.hpp"

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
  if (uninterrupted([&] { return ::waitpid(child, &status, 0); }) < 0) return kDeviceFailure;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int serve(int socket, bool idle, const std::function<int(int, char**)>& body) {
  constexpr int kLowest = 19;
  if (idle) ::setpriority(PRIO_PROCESS, 0, kLowest);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0 || ::dup2(nowhere, STDOUT_FILENO) < 0 || ::dup2(nowhere, STDERR_FILENO) < 0) return kDeviceFailure;
  std::signal(SIGINT, SIG_IGN);  // the process that asks answers a terminal's
  LineSocket asked(socket);
  while (const std::optional<std::string> line = asked.take(/*waits=*/true))
    if (!asked.send(std::to_string(in_a_child(*line, socket, body)) + "\n")) break;
  return kDone;
}

}  // namespace tandem
