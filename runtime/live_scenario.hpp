// A scenario for a run on this machine: loaded within what the process may use, and refused where the device cannot do
// it. Must not know how it is run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/cli.hpp"

namespace tandem {

// The scenario with its host memory inside what this process may use: stated more is refused, and where nothing is
// stated the limit becomes the cap, as a setting, so that a log of the run says it. `device` as of --device. Throws
// ConfigError and DoesNotFit.
Scenario load_live_scenario(CommonFlags& common, const std::string& device);
// The same for so many processes, a rank each; 0: as many as the scenario has ranks.
Scenario load_live_scenario(CommonFlags& common, const std::string& device, std::int64_t processes);
// The same of what `load` loads with settings ("path.to.key=value"), to which the cap is added.
using LoadScenario = std::function<Scenario(const std::vector<std::string>& settings)>;
Scenario load_live_scenario(const LoadScenario& load, std::vector<std::string>& settings, const std::string& device);

// What is not trained yet where ranks divide layers (parallel.tensor). Throws ConfigError.
void refuse_of_divided_modules(const Scenario& scenario);

}  // namespace tandem
