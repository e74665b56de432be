#include "apps/simulations.hpp"

#include <algorithm>
#include <fstream>

#include "cli/atomic_file.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"

namespace tandem {

Simulable simulable(const CommonFlags& flags, const TemporaryFolder& folder) {
  Simulable it{load_scenario(flags), scenario_arguments(flags)};
  if (other_than_a_file(flags.scenario_path).empty()) return it;
  it.arguments = {folder.file("scenario.yaml")};
  write_file(it.arguments.front(), it.scenario.text);
  return it;
}

bool may_have_steps(const Scenario& scenario, std::int32_t steps) {
  if (!scenario.switches.empty() || !scenario.truth.drift.empty()) return false;
  try {
    parse_scenario(scenario.text, scenario.path, {"steps=" + std::to_string(steps)});
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

nlohmann::ordered_json read_result(const std::string& path) {
  std::ifstream in(path);
  auto json = nlohmann::ordered_json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) throw DeviceError(path + ": the simulation ended well, but its result cannot be read");
  return json;
}

Simulations::Simulations(std::vector<std::string> arguments, const std::vector<std::string>& settings)
    : base_(std::move(arguments)) {
  for (const std::string& setting : settings) base_.push_back("--set=" + setting);
}

std::size_t Simulations::add(std::vector<std::string> settings) {
  points_.push_back({points_.size(), std::move(settings)});
  return points_.size() - 1;
}

void Simulations::run(bool quiet) {
  std::size_t next = rows_.size(), done = 0;
  const std::size_t count = points_.size() - next;
  if (count == 0) return;
  Progress progress("simulations", quiet);
  rows_.resize(points_.size());
  SweepRun run;
  run.base = base_;
  run.processes = std::min(cores_here(), static_cast<int>(count));
  run.next = [&] { return next < points_.size() ? std::optional(points_[next++]) : std::nullopt; };
  run.done = [&](const SweepPoint& point, SimulatedRow row) {
    rows_[point.number] = std::move(row);
    progress.update(static_cast<double>(++done) / static_cast<double>(count));
  };
  simulate_all(run);
}

const nlohmann::ordered_json& Simulations::result(std::size_t number) const {
  if (!rows_[number].ran()) throw DeviceError("a simulation failed: " + rows_[number].why_not);
  return rows_[number].result;
}

}  // namespace tandem
