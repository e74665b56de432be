#include "cli/serve.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/line_socket.hpp"
#include "core/base/system_calls.hpp"
#include "report/origin.hpp"

namespace tandem {
namespace {

using Json = nlohmann::json;
using Body = std::function<int(int, char**)>;

int run_request(const Json& arguments, const Body& body) {
  if (!arguments.is_array()) return kBadInput;
  std::vector<std::string> words{"tandem-simulate"};
  for (const Json& word : arguments) words.push_back(word.is_string() ? word.get<std::string>() : "");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  // One of many rows: what asks knows what it asked, and each byte of an answer costs.
  return run_main(static_cast<int>(pointers.size()), pointers.data(), [&](int count, char** arguments_given) {
    tell_program("", {});
    return body(count, arguments_given);
  });
}

// What a request writes to one of its descriptors: in memory, so that no disk is waited for.
class Kept {
 public:
  explicit Kept(const char* name) : file_(::memfd_create(name, MFD_CLOEXEC)) {}
  ~Kept() { ::close(file_); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  bool take_the_place_of(int descriptor) const { return file_ >= 0 && ::dup2(file_, descriptor) >= 0; }
  std::string text() const {
    std::string all;
    std::array<char, 1 << 14> buffer{};
    for (off_t at = 0;;) {
      const ssize_t got = uninterrupted([&] { return ::pread(file_, buffer.data(), buffer.size(), at); });
      if (got <= 0) return all;
      all.append(buffer.data(), static_cast<std::size_t>(got));
      at += got;
    }
  }

 private:
  int file_;
};

// `before` is called in the child: false ends it.
int in_a_child(const Json& arguments, int socket, const Body& body, const std::function<bool()>& before) {
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return kDeviceFailure;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kInterrupted);
    ::close(socket);
    if (!before()) ::_exit(kDeviceFailure);
    const int code = run_request(arguments, body);
    std::fflush(stdout);
    std::_Exit(code);
  }
  int status = 0;
  if (uninterrupted([&] { return ::waitpid(child, &status, 0); }) < 0) return kDeviceFailure;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string answer(const Json& request, int socket, const Body& body) {
  if (!request.is_object()) return std::to_string(in_a_child(request, socket, body, [] { return true; }));
  const Kept output("output"), errors("errors");
  const int code = in_a_child(request.value("arguments", Json()), socket, body, [&] {
    return output.take_the_place_of(STDOUT_FILENO) && errors.take_the_place_of(STDERR_FILENO);
  });
  return Json{{"exit_code", code}, {"output", output.text()}, {"errors", errors.text()}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

int serve(int socket, bool idle, const Body& body) {
  constexpr int kLowest = 19;
  if (idle) ::setpriority(PRIO_PROCESS, 0, kLowest);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0 || ::dup2(nowhere, STDOUT_FILENO) < 0 || ::dup2(nowhere, STDERR_FILENO) < 0) return kDeviceFailure;
  std::signal(SIGINT, SIG_IGN);  // the process that asks answers a terminal's
  LineSocket asked(socket);
  while (const std::optional<std::string> line = asked.take(/*waits=*/true))
    if (!asked.send(answer(Json::parse(*line, nullptr, false), socket, body) + "\n")) break;
  return kDone;
}

}  // namespace tandem
