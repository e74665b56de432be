#include "sim/trial.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/base/errors.hpp"
#include "sim/forked.hpp"
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

}  // namespace

TrialResult SimulatedTrials::operator()(const Scenario& scenario) {
  if (left_ <= 0) return {};
  const std::string told = answer_in_forks(1, 1, [&](std::size_t) {
                             const Report report = run(scenario, fidelity_, std::min(each_, left_));
                             return std::string(reinterpret_cast<const char*>(&report), sizeof report);
                           }).front();
  Report report;
  if (told.size() == sizeof report) std::memcpy(&report, told.data(), sizeof report);
  left_ -= told.empty() ? each_ : report.commands;
  return report.result;
}

}  // namespace tandem
