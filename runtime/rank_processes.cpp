#include "runtime/rank_processes.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "cli/child_process.hpp"
#include "core/base/errors.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string end_of(Rank rank, int status) {
  return " rank " + std::to_string(rank) +
         (WIFSIGNALED(status) ? " was ended by signal " + std::to_string(WTERMSIG(status))
                              : " ended with exit code " + std::to_string(WEXITSTATUS(status)));
}

}  // namespace

RankProcesses::RankProcesses() : meeting_file_(folder_.file("meeting")) {}

RankProcesses::RankProcesses(Rank ranks, const std::vector<std::string>& arguments, const std::string& program,
                             Rank own)
    : RankProcesses() {
  const std::string path = program.empty() ? fs::read_symlink("/proc/self/exe").string() : program;
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (rank == own) continue;
    std::vector<std::string> all = arguments;
    all.push_back("--rank=" + std::to_string(rank));
    all.push_back("--meeting-file=" + meeting_file_);
    processes_.push_back({rank, start_child(path, std::move(all))});
  }
}

RankProcesses::~RankProcesses() {
  for (const Process& process : processes_) {
    if (process.id == 0) continue;
    kill(process.id, SIGKILL);
    wait_for(process.id);
  }
}

void RankProcesses::require_alive() {
  for (Process& process : processes_) {
    int status = 0;
    if (process.id == 0 || waitpid(process.id, &status, WNOHANG) != process.id) continue;
    process.id = 0;
    throw DeviceError("not all ranks began:" + end_of(process.rank, status));
  }
}

bool RankProcesses::is_spared(Rank rank) const {
  return std::find(spared_.begin(), spared_.end(), rank) != spared_.end();
}

std::string RankProcesses::told(int changes, const std::function<std::string(Rank, const siginfo_t&)>& what) const {
  std::string text;
  for (const Process& process : processes_) {
    siginfo_t info{};
    const auto id = static_cast<id_t>(process.id);
    if (process.id == 0 || waitid(P_PID, id, &info, changes | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) continue;
    if (const std::string said = what(process.rank, info); !said.empty())
      text += (text.empty() ? "rank " : ", rank ") + std::to_string(process.rank) + said;
  }
  return text;
}

std::string RankProcesses::struck() const {
  return told(WEXITED | WSTOPPED, [](Rank, const siginfo_t& info) -> std::string {
    if (info.si_code == CLD_STOPPED) return " is stopped, by signal " + std::to_string(info.si_status);
    return info.si_code == CLD_EXITED ? "" : " was ended by signal " + std::to_string(info.si_status);
  });
}

std::string RankProcesses::lost() const {
  return told(WEXITED, [this](Rank rank, const siginfo_t& info) -> std::string {
    if (info.si_code != CLD_EXITED)
      return is_spared(rank) ? "" : " was ended by signal " + std::to_string(info.si_status);
    return info.si_status == 0 ? "" : " has ended, with exit code " + std::to_string(info.si_status);
  });
}

std::string struck_by_now(const RankProcesses* others) {
  constexpr int kLooks = 20;
  constexpr std::chrono::milliseconds kBetween{10};
  std::string text;
  for (int look = 0; others != nullptr && text.empty() && look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(kBetween);
    text = others->struck();
  }
  return text.empty() ? "" : "; " + text;
}

std::string RankProcesses::finish() {
  std::string failures, spared;
  for (Process& process : processes_) {
    if (process.id == 0) continue;
    const int status = wait_for(process.id);
    process.id = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    (WIFSIGNALED(status) && is_spared(process.rank) ? spared : failures) += end_of(process.rank, status);
  }
  if (!failures.empty()) throw DeviceError("not all ranks finished:" + failures);
  return spared;
}

}  // namespace tandem
