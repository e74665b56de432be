#include "cli/siblings.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "report/summary.hpp"

extern char** environ;

namespace tandem {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

[[noreturn]] void fail(const std::string& what, int error) { throw DeviceError(what + ": " + std::strerror(error)); }

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

int wait_for_exit(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail("cannot wait for a program", errno);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class SpawnActions {
 public:
  SpawnActions() {
    if (const int error = posix_spawn_file_actions_init(&actions_)) fail("cannot prepare a program's start", error);
  }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  void redirect(int from, int to) {
    if (const int error = posix_spawn_file_actions_adddup2(&actions_, from, to)) fail("cannot redirect output", error);
  }
  void redirect(int from, const std::string& file) {
    constexpr mode_t kOwnerOnly = 0600;
    if (const int error =
            posix_spawn_file_actions_addopen(&actions_, from, file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, kOwnerOnly))
      fail("cannot redirect output", error);
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

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
  std::vector<std::string> words{sibling(part)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  hold_interrupts(true);  // the new program has no handler yet
  ::execv(words.front().c_str(), pointers(words).data());
  const int error = errno;
  hold_interrupts(false);
  fail("cannot start " + words.front(), error);
}

ChildResult run_child(const std::string& part, const std::vector<std::string>& arguments, bool keep_errors,
                      const std::string& output) {
  std::vector<std::string> words{sibling(part)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::array<int, 2> pipe{-1, -1};
  SpawnActions actions;
  if (keep_errors) {
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) fail("cannot make a pipe", errno);
    actions.redirect(pipe[1], STDERR_FILENO);
  }
  if (!output.empty()) actions.redirect(STDOUT_FILENO, output);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, words.front().c_str(), actions.get(), nullptr, pointers(words).data(), environ);
  if (keep_errors) ::close(pipe[1]);
  if (error != 0) {
    if (keep_errors) ::close(pipe[0]);
    fail("cannot start " + words.front(), error);
  }
  ChildResult result;
  if (keep_errors) {
    result.errors = read_all(pipe[0]);
    ::close(pipe[0]);
  }
  result.exit_code = wait_for_exit(child);
  return result;
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

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/tandem-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) fail("cannot make a folder for intermediate files in " + path_, errno);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // what cannot be removed is left to the system's cleaning
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tandem
