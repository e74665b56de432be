// Simulations of one scenario with different settings, several at a time, for commands that compare them. Must not know
// what the settings are for.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "report/simulated_row.hpp"
#include "report/temporary_file.hpp"
#include "sweep/run.hpp"

namespace tandem {

// A scenario, and the arguments by which tandem-simulate simulates it.
struct Simulable {
  Scenario scenario;
  std::vector<std::string> arguments;
};
// Of FILE. A pipe is read once, and written to `folder`. Throws ConfigError.
Simulable simulable(const CommonFlags& flags, const TemporaryFolder& folder);

// Whether the scenario may have so many steps instead of its own number: other keys of it may go by that.
bool may_have_steps(const Scenario& scenario, std::int32_t steps);

// What tandem-simulate wrote with --json. Throws DeviceError.
nlohmann::ordered_json read_result(const std::string& path);

class Simulations {
 public:
  // `settings`: --set arguments of all of them.
  Simulations(std::vector<std::string> arguments, const std::vector<std::string>& settings);

  // The number of the simulation with these settings.
  std::size_t add(std::vector<std::string> settings);
  // Those that were added and have not run yet.
  void run(bool quiet);
  const SimulatedRow& row(std::size_t number) const { return rows_[number]; }
  // Throws DeviceError where it has not ended well.
  const nlohmann::ordered_json& result(std::size_t number) const;

 private:
  std::vector<std::string> base_;
  std::vector<SweepPoint> points_;
  std::vector<SimulatedRow> rows_;  // fewer than points: the others have not run
};

}  // namespace tandem
