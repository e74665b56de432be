#include "sweep/run.hpp"

#include <algorithm>
#include <csignal>
#include <thread>

#include "cli/cli.hpp"
#include "cli/siblings.hpp"
#include "cli/simulators.hpp"
#include "core/base/interrupted.hpp"
#include "sweep/search.hpp"

namespace tandem {
namespace {

SimulatedRow row_of(const Simulators::Reply& reply) {
  constexpr int kSignal = 128;
  if (reply.exit_code == kInterrupted || reply.exit_code == kSignal + SIGTERM)
    throw Interrupted("interrupted");  // a person who wants all of it to end
  SimulatedRow row;
  row.exit_code = reply.exit_code;
  if (reply.exit_code == kDone) {
    row.result = nlohmann::ordered_json::parse(reply.output, nullptr, /*allow_exceptions=*/false);
    if (!row.result.is_discarded()) {
      row.result.erase("simulator");  // how long it took here and now is none of the scenario's
      return row;
    }
    row.exit_code = kDeviceFailure;
    row.result = {};
    row.why_not = "the simulation ended well, but its result cannot be read";
  } else {
    row.why_not = ChildResult{reply.exit_code, reply.errors}.reason();
  }
  row.does_not_fit = row.exit_code == kDoesNotFit;
  row.failed = !row.does_not_fit && row.exit_code != kBadInput;
  return row;
}

class Running {
 public:
  explicit Running(const SweepRun& run) : run_(run), simulators_(std::max(run.processes, 1)), points_(all()) {}

  void to_the_end() {
    std::size_t busy = 0;
    for (int i = 0; i < simulators_.count(); ++i) busy += begin(i) ? 1 : 0;
    while (busy > 0)
      if (const std::optional<Simulators::Reply> reply = simulators_.wait()) busy -= go_on(*reply) ? 0 : 1;
  }

 private:
  struct At {
    SweepPoint point;
    std::optional<PointSearch> search;
  };
  std::size_t all() const { return static_cast<std::size_t>(simulators_.count()); }

  // False: there is nothing left to do.
  bool begin(int simulator) {
    std::optional<SweepPoint> point = run_.next();
    if (!point) return false;
    At& at = points_[static_cast<std::size_t>(simulator)];
    at.search.emplace(point->settings, run_.largest);
    at.point = std::move(*point);
    ask(simulator);
    return true;
  }
  void ask(int simulator) {
    std::vector<std::string> arguments = run_.base;
    for (const std::string& setting : points_[static_cast<std::size_t>(simulator)].search->question())
      arguments.push_back("--set=" + setting);
    for (const char* flag : {"--json=-", "--quiet", "--no-trials"}) arguments.emplace_back(flag);
    simulators_.ask(simulator, arguments);
  }
  bool go_on(const Simulators::Reply& reply) {
    At& at = points_[static_cast<std::size_t>(reply.simulator)];
    at.search->answer(row_of(reply));
    if (!at.search->is_over()) {
      ask(reply.simulator);
      return true;
    }
    run_.done(at.point, at.search->take());
    return begin(reply.simulator);
  }

  const SweepRun& run_;
  Simulators simulators_;
  std::vector<At> points_;
};

}  // namespace

int cores_here() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

void simulate_all(const SweepRun& run) { Running(run).to_the_end(); }

}  // namespace tandem
