#include "core/transforms/servers/owners.hpp"

#include <algorithm>
#include <string>

#include "core/base/errors.hpp"

namespace tandem {

std::vector<std::int32_t> server_of(const TrainingPlan& plan, std::int64_t servers) {
  std::vector<std::size_t> trained;
  for (std::size_t i = 0; i < plan.stages.size(); ++i)
    if (plan.stages[i].trains()) trained.push_back(i);
  if (servers > static_cast<std::int64_t>(trained.size()))
    throw ConfigError("parallel.servers: " + std::to_string(trained.size()) +
                      " modules of the network are trained, each of which one server has; allowed: at most so many");
  std::stable_sort(trained.begin(), trained.end(),
                   [&](std::size_t a, std::size_t b) { return plan.stages[a].elements > plan.stages[b].elements; });
  std::vector<std::int32_t> owners(plan.stages.size(), kNone);
  std::vector<std::int64_t> load(static_cast<std::size_t>(servers), 0);
  for (const std::size_t stage : trained) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += plan.stages[stage].elements;
    owners[stage] = static_cast<std::int32_t>(least - load.begin());
  }
  return owners;
}

}  // namespace tandem
