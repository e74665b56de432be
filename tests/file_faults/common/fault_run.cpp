#include "tests/file_faults/common/fault_run.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string_view>

#include "tests/file_faults/library/faults.hpp"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kSecondsForOneRun = 60;
constexpr int kThrew = 99;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whose manual pages name EINTR.
bool may_be_interrupted(const TracedCall& call) {
  return is_one_of(call.name, {"open", "open to make", "read", "pread", "write", "writev", "pwrite", "fsync",
                               "fdatasync", "ftruncate", "truncate", "flock", "fchmod", "close"});
}

// What can happen to a call. A death around one that leaves nothing on the disk is left out.
std::vector<const char*> kinds_for(const TracedCall& call) {
  std::vector<const char*> kinds = {"EIO"};
  if (may_be_interrupted(call)) kinds.push_back("EINTR");
  const bool moves_bytes = is_one_of(call.name, {"read", "pread", "write", "writev", "pwrite"});
  if (moves_bytes && call.result > 1) kinds.push_back("short");
  if (writes_to_disk(call)) kinds.insert(kinds.end(), {"ENOSPC", "kill_before", "kill_after"});
  return kinds;
}

// The file and its folder, without numbers.
std::string kind_of_file(const fs::path& path) {
  std::string name = path.parent_path().filename().string() + "/" + path.filename().string();
  std::erase_if(name, [](unsigned char c) { return std::isdigit(c) != 0; });
  return name;
}

std::vector<TracedCall> read_trace(const std::string& file) {
  std::vector<TracedCall> calls;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::array<std::string, 6> cells;
    std::istringstream text(line);
    for (std::string& cell : cells) std::getline(text, cell, '\t');
    calls.push_back({std::stol(cells[0]), cells[1], std::stol(cells[2]), !cells[3].empty(), cells[4], cells[5]});
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const TracedCall& a, const TracedCall& b) { return a.number < b.number; });
  return calls;
}

[[noreturn]] void run_here(const std::string& folder, const Fault& fault, const std::string& output,
                           const std::string& trace, const std::function<int()>& program) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(kSecondsForOneRun);
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  ::setenv("TANDEM_FAULT_FOLDER", folder.c_str(), 1);
  ::setenv("TANDEM_FAULT_KIND", fault.kind.c_str(), 1);
  ::setenv("TANDEM_FAULT_AT", std::to_string(fault.kind.empty() ? 0 : fault.at).c_str(), 1);
  ::setenv("TANDEM_FAULT_TRACE", trace.c_str(), 1);
  tandem_faults_read_environment();
  int code = kThrew;  // nothing may come back into the test: this process is not its own
  try {
    code = program();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the program threw: %s\n", error.what());
  }
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

std::string text(const Fault& fault) {
  return fault.kind.empty() ? "no fault" : fault.kind + " at call " + std::to_string(fault.at);
}

bool writes_to_disk(const TracedCall& call) {
  return is_one_of(call.name, {"open to make", "mkostemp", "mkdtemp", "mkdir", "write", "writev", "pwrite", "fsync",
                               "fdatasync", "ftruncate", "truncate", "fchmod", "rename", "unlink", "rmdir"});
}

bool must_succeed(const TracedCall& call) {
  return is_one_of(call.name,
                   {"open to make", "mkdir", "write", "writev", "pwrite", "fsync", "fdatasync", "ftruncate", "rename"});
}

const TracedCall* Ended::faulted() const {
  const auto found = std::find_if(calls.begin(), calls.end(), [](const TracedCall& call) { return call.faulted; });
  return found == calls.end() ? nullptr : &*found;
}

Ended run_with(const std::string& folder, const Fault& fault, const std::function<int()>& program) {
  const std::string output = folder + ".output", trace = folder + ".trace";
  fs::remove(trace);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) run_here(folder, fault, output, trace, program);
  int status = -1;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), bytes_of(output), read_trace(trace)};
}

std::vector<Fault> chosen(const std::vector<TracedCall>& calls, std::size_t most) {
  std::map<std::string, std::vector<Fault>> kinds;
  std::vector<Fault> all, some;
  for (const TracedCall& call : calls)
    for (const char* kind : kinds_for(call)) {
      all.push_back({kind, call.number});
      kinds[std::string(kind) + " " + call.name + " " + kind_of_file(call.path)].push_back(all.back());
    }
  if (std::getenv("TANDEM_EVERY_FAULT") != nullptr) return all;
  std::mt19937 seeded(11);
  for (const auto& [kind, faults] : kinds) some.push_back(faults[seeded() % faults.size()]);
  std::shuffle(some.begin(), some.end(), seeded);
  some.resize(std::min(some.size(), most));
  return some;
}

std::string new_folder() {
  const char* const memory = "/dev/shm";
  std::string name =
      (::access(memory, W_OK) == 0 ? std::string(memory) : ::testing::TempDir()) + "/tandem-faults-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) std::perror(name.c_str());
  return name;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace tandem::testing
