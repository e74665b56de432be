#include "sim/trial.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "core/base/errors.hpp"
#include "sim/simulate.hpp"

namespace tandem {
namespace {

// What a trial's process tells the one that started it.
struct Report {
  TrialResult result;
  std::int64_t commands = 0;
};

class CountedLog final : public EventLog {
 public:
  explicit CountedLog(std::int64_t most) : most_(most) {}
  void append(const EventBatch&) override {}
  void append(std::span<const Command> commands) override {
    count_ += static_cast<std::int64_t>(commands.size());
    if (count_ > most_) throw DeviceError("given up");
  }
  std::int64_t count() const { return count_; }

 private:
  std::int64_t most_, count_ = 0;
};

Report run(const Scenario& scenario, Fidelity fidelity, std::int64_t most_commands) {
  Report report;
  CountedLog log(most_commands);
  try {
    Simulation simulation(scenario, fidelity);
    simulation.run_into(log);
    report.result.kind = TrialResult::Kind::Done;
  } catch (const OutOfRoom& refusal) {
    report.result = {.kind = TrialResult::Kind::Refused, .figures = refusal.figures()};
  } catch (const std::exception&) {  // given up, or what the policy or the workload do not allow: Unknown
  }
  report.commands = log.count();
  return report;
}

[[noreturn]] void child(const Scenario& scenario, Fidelity fidelity, std::int64_t most_commands, pid_t parent,
                        int pipe_end) {
  // It ends with the process that wants to know, and leaves that one's files alone.
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(1);
  // Its complaints are no concern of the user's.
  const int nowhere = ::open("/dev/null", O_WRONLY);
  if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
  const Report report = run(scenario, fidelity, most_commands);
  const bool told = ::write(pipe_end, &report, sizeof report) == static_cast<ssize_t>(sizeof report);
  ::_exit(told ? 0 : 1);
}

}  // namespace

TrialResult SimulatedTrials::operator()(const Scenario& scenario) {
  if (left_ <= 0) return {};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t self = ::getpid(), pid = ::fork();
  if (pid == 0) child(scenario, fidelity_, std::min(each_, left_), self, ends[1]);
  ::close(ends[1]);
  Report report;
  const bool told = pid > 0 && ::read(ends[0], &report, sizeof report) == static_cast<ssize_t>(sizeof report);
  ::close(ends[0]);
  if (pid > 0)
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  left_ -= told ? report.commands : each_;
  return told ? report.result : TrialResult{};
}

}  // namespace tandem
