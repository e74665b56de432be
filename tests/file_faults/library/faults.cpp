#include "tests/file_faults/library/faults.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace tandem::faults {
namespace {

constexpr std::size_t kMostDescriptors = 4096;

struct State {
  std::atomic<bool> armed{false};
  std::atomic<long> calls{0};
  long at = 0;
  std::string folder, kind;
  int trace = -1;
  std::mutex mutex;  // of the paths
  std::array<std::string, kMostDescriptors> paths;
};

// Never destroyed: files are closed while the process ends.
State& state() {
  static auto* const all = new State;
  return *all;
}

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

bool counts(const std::string& path) {
  const std::string& folder = state().folder;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

int error_of(const std::string& kind) {
  return kind == "EIO" ? EIO : kind == "ENOSPC" ? ENOSPC : kind == "EINTR" ? EINTR : 0;
}

[[noreturn]] void end_here() {
  ::syscall(SYS_kill, ::getpid(), SIGKILL);
  std::abort();
}

}  // namespace

Verdict judge(const char* name, const std::string& path, const std::string& second) {
  State& s = state();
  if (!s.armed || !(counts(path) || counts(second))) return {};
  const long number = ++s.calls;
  if (number != s.at) return {Fate::Counted, number, 0};
  if (s.kind == "kill_before") {
    note({Fate::KillBefore, number, 0}, name, -1, path, second);
    end_here();
  }
  if (s.kind == "kill_after") return {Fate::KillAfter, number, 0};
  if (s.kind == "short") return {Fate::Short, number, 0};
  return {Fate::Fails, number, error_of(s.kind)};
}

void note(const Verdict& verdict, const char* name, long result, const std::string& path, const std::string& second) {
  if (verdict.fate == Fate::Untouched) return;
  const int error = errno;
  const bool faulted = verdict.fate != Fate::Counted;
  if (state().trace >= 0) {
    const std::string line = std::to_string(verdict.number) + "\t" + name + "\t" + std::to_string(result) + "\t" +
                             (faulted ? "fault" : "") + "\t" + path + "\t" + second + "\n";
    ::syscall(SYS_write, state().trace, line.data(), line.size());  // past the calls that are counted
  }
  if (verdict.fate == Fate::KillAfter) end_here();
  errno = error;
}

std::string path_of(int descriptor) {
  State& s = state();
  if (!s.armed || descriptor < 0 || static_cast<std::size_t>(descriptor) >= kMostDescriptors) return "";
  const std::lock_guard lock(s.mutex);
  return s.paths[static_cast<std::size_t>(descriptor)];
}

void remember(int descriptor, const std::string& path) {
  State& s = state();
  if (!s.armed || descriptor < 0 || static_cast<std::size_t>(descriptor) >= kMostDescriptors) return;
  const std::lock_guard lock(s.mutex);
  s.paths[static_cast<std::size_t>(descriptor)] = counts(path) ? path : "";
}

void forget(int descriptor) { remember(descriptor, ""); }

void moved(const std::string& from, const std::string& to) {
  State& s = state();
  if (!s.armed) return;
  const std::lock_guard lock(s.mutex);
  for (std::string& path : s.paths)
    if (path.starts_with(from) && (path.size() == from.size() || path[from.size()] == '/'))
      path = to + path.substr(from.size());
}

std::string absolute(int descriptor, const char* path) {
  if (!state().armed || path == nullptr) return "";
  if (*path == '/') return path;
  std::string begin = descriptor == AT_FDCWD ? "" : path_of(descriptor);
  if (descriptor == AT_FDCWD) {
    std::array<char, PATH_MAX> here{};
    if (::syscall(SYS_getcwd, here.data(), here.size()) > 0) begin = here.data();
  }
  return begin.empty() ? "" : begin + "/" + path;
}

}  // namespace tandem::faults

extern "C" void tandem_faults_read_environment() {
  using namespace tandem::faults;
  State& s = state();
  s.armed = false;
  s.calls = 0;
  s.folder = variable("TANDEM_FAULT_FOLDER");
  s.kind = variable("TANDEM_FAULT_KIND");
  s.at = std::atol(variable("TANDEM_FAULT_AT").c_str());
  s.trace = -1;
  if (const std::string trace = variable("TANDEM_FAULT_TRACE"); !trace.empty())
    s.trace = static_cast<int>(
        ::syscall(SYS_openat, AT_FDCWD, trace.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  s.armed = !s.folder.empty();
}

__attribute__((constructor)) static void read_environment_at_start() { tandem_faults_read_environment(); }
