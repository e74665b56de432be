#include "cli/siblings.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>

#include "cli/child_process.hpp"
#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "report/summary.hpp"

namespace tandem {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// LibTorch's libraries, and those that decode, take most of this much of the address space before the program begins,
// and its threads the rest: without it their start, or that of a thread, ends by a signal.
void require_address_space(const std::string& part) {
  constexpr rlim_t kLeastBytes = rlim_t{1280} << 20;
  rlimit limit{};
  const bool uses_libtorch = part.starts_with("train") || part.starts_with("calibrate");
  if (!uses_libtorch || ::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= kLeastBytes) return;
  throw DeviceError("tandem-" + part + " needs " + std::to_string(kLeastBytes >> 20) +
                    " MiB of address space to begin, and this process may use " + std::to_string(limit.rlim_cur >> 20) +
                    " MiB; raise `ulimit -v`");
}

[[noreturn]] void fail(const std::string& what, int error) { throw DeviceError(what + ": " + std::strerror(error)); }

}  // namespace

std::string sibling(const std::string& part) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw DeviceError("cannot find this program's own folder: " + error.message());
  const auto path = self.parent_path() / ("tandem-" + part);
  if (::access(path.c_str(), X_OK) == 0) return path.string();
  throw ConfigError("tandem-" + part + " is not built: it is not in " + self.parent_path().string() +
                    "; `make build` builds all that this machine can");
}

void become(const std::string& part, const std::vector<std::string>& arguments) {
  require_address_space(part);
  std::vector<std::string> words{sibling(part)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  become_program(std::move(words));
}

void become_program(std::vector<std::string> words) {
  hold_interrupts(true);  // the new program has no handler yet
  ::execv(words.front().c_str(), pointers(words).data());
  const int error = errno;
  hold_interrupts(false);
  fail("cannot start " + words.front(), error);
}

ChildResult run_child(const std::string& part, const std::vector<std::string>& arguments, bool keep_errors,
                      const std::string& output) {
  require_address_space(part);
  std::array<int, 2> pipe{-1, -1};
  if (keep_errors && ::pipe2(pipe.data(), O_CLOEXEC) != 0) fail("cannot make a pipe", errno);
  const auto close_end = [&](int end) {
    if (int& descriptor = pipe[static_cast<std::size_t>(end)]; descriptor >= 0) ::close(std::exchange(descriptor, -1));
  };
  try {
    const pid_t child = start_child(sibling(part), arguments, {pipe[1], output});
    close_end(1);
    ChildEnd end = wait_for_child(child, pipe[0]);
    close_end(0);
    const int code = WIFEXITED(end.status) ? WEXITSTATUS(end.status) : 128 + WTERMSIG(end.status);
    return {code, std::move(end.errors)};
  } catch (...) {
    close_end(0);
    close_end(1);
    throw;
  }
}

// A program says each error on a line of its own, after its name; what else it prints there is not about why it ended.
std::string ChildResult::reason() const {
  constexpr std::string_view kName = "tandem: ";
  std::istringstream in(errors);
  std::string first, reasons;
  for (std::string line; std::getline(in, line);) {
    if (first.empty()) first = line;
    if (line.starts_with(kName)) reasons += (reasons.empty() ? "" : " / ") + line.substr(kName.size());
  }
  if (first.empty() && exit_code > 128) return "ended by signal " + std::to_string(exit_code - 128);
  return terminal_text(reasons.empty() ? first : reasons);
}

}  // namespace tandem
