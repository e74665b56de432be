#include "core/optimizers/optimizer.hpp"

#include "core/base/errors.hpp"

namespace tandem {
namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& problem, const std::string& allowed) {
  throw ConfigError("optimizer." + key + ": " + problem + "; allowed: " + allowed);
}

void check_states(const OptimizerEntry& optimizer, const Scenario& scenario) {
  const OptimizerOptions& o = scenario.optimizer;
  const std::string name(optimizer.name), bits = std::to_string(o.state_bits);
  if (o.state_bits != 32 && o.state_bits != 16 && o.state_bits != 8 && o.state_bits != 4)
    refuse("state_bits", bits + " is not known", "32, 16, 8, 4");
  if (o.state_bits < 16 && !optimizer.quantises)
    refuse("state_bits", name + " keeps no states in " + bits + " bits", optimizer.by_element() ? "32, 16" : "32");
  if (optimizer.by_element()) return;
  if (o.state_bits != 32) refuse("state_bits", name + "'s states are few, and in fp32", "32");
  if (scenario.workload.partition != "none")
    throw ConfigError("workload.partition: " + name +
                      " looks at whole tensors, of which ranks would have parts; allowed: none, or another optimizer");
  if (scenario.workload.precision == DType::F16 && o.loss_scaling)
    refuse("loss_scaling", name + " skips no steps", "none, or workload.precision bf16 or fp32");
}

}  // namespace

const OptimizerEntry& optimizer_of(const Scenario& scenario) {
  const OptimizerEntry* optimizer = find_optimizer(scenario.optimizer.name);
  if (optimizer == nullptr) {
    std::string names;
    for (const OptimizerEntry* known : optimizers()) names += (names.empty() ? "" : ", ") + std::string(known->name);
    refuse("name", "\"" + scenario.optimizer.name + "\" is not known", names);
  }
  check_states(*optimizer, scenario);
  return *optimizer;
}

}  // namespace tandem
