#include "runtime/rank_processes.hpp"

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "core/base/errors.hpp"

extern char** environ;

namespace tandem {
namespace {

namespace fs = std::filesystem;

pid_t spawn(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t process = 0;
  const int error = posix_spawn(&process, program.c_str(), nullptr, nullptr, pointers.data(), environ);
  if (error != 0) throw DeviceError("cannot start a process for another rank: " + std::string(std::strerror(error)));
  return process;
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

RankProcesses::RankProcesses(Rank ranks, const std::vector<std::string>& arguments, const std::string& program)
    : RankProcesses() {
  folder_ = (fs::temp_directory_path() / "tandem_ranks_XXXXXX").string();
  if (mkdtemp(folder_.data()) == nullptr)  // which leaves no folder to remove: the name is of the template
    throw DeviceError("cannot make a folder for the ranks to meet: " + folder_ + ": " + std::strerror(errno));
  meeting_file_ = folder_ + "/meeting";
  const std::string path = program.empty() ? fs::read_symlink("/proc/self/exe").string() : program;
  for (Rank rank = 1; rank < ranks; ++rank) {
    std::vector<std::string> all = arguments;
    all.push_back("--rank=" + std::to_string(rank));
    all.push_back("--meeting-file=" + meeting_file_);
    processes_.push_back(spawn(path, std::move(all)));
  }
}

RankProcesses::~RankProcesses() {
  for (pid_t process : processes_) {
    if (process == 0) continue;
    kill(process, SIGKILL);
    wait_for(process);
  }
  std::error_code ignored;  // a folder that stays in the temporary folder harms nobody
  fs::remove_all(folder_, ignored);
}

void RankProcesses::finish() {
  std::string failures;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const int status = wait_for(processes_[i]);
    processes_[i] = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    failures += " rank " + std::to_string(i + 1) +
                (WIFSIGNALED(status) ? " was ended by signal " + std::to_string(WTERMSIG(status))
                                     : " ended with exit code " + std::to_string(WEXITSTATUS(status)));
  }
  if (!failures.empty()) throw DeviceError("not all ranks finished:" + failures);
}

void follow_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace tandem
