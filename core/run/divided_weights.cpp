#include "core/run/divided_weights.hpp"

#include <map>
#include <mutex>
#include <string>

#include "core/base/errors.hpp"
#include "core/scenario/layer_ranks.hpp"
#include "core/scenario/ranks.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

std::string module_of(const std::string& weight) { return weight.substr(0, weight.find('.')); }

// What decides which weights there are.
std::string identity_of(const WorkloadOptions& w) {
  std::string text = w.family + "\n" + std::string(name_of(w.precision)) + "\n" + std::to_string(w.tensor);
  for (const auto& [key, value] : w.parallel.all()) text += "\n" + key + ": " + KeyValues::words(value);
  for (const auto& [key, value] : w.keys.all()) text += "\n" + key + ": " + KeyValues::words(value);
  for (const std::string& pattern : w.trained) text += "\n" + pattern;
  return text;
}

}  // namespace

WeightParts parts_of(const Scenario& scenario) {
  const Network whole = network_of(undivided(scenario)), divided = network_of(scenario);
  Scenario columns = scenario;  // those of each layer alone
  columns.workload.tensor /= hidden_ranks(scenario);
  for (const char* key : {"hidden", "expert", "expert_imbalance"}) columns.workload.parallel[key] = 1;
  const std::int64_t neighbours = columns.workload.tensor;
  const bool two_ways = neighbours > 1 && (hidden_ranks(scenario) > 1 || expert_ranks(scenario) > 1);
  return two_ways ? weight_parts(whole, network_of(columns), divided, neighbours) : weight_parts(whole, divided);
}

bool DividedWeights::are_in(const Scenario& scenario) {
  return scenario.workload.tensor > 1 || sequence_ranks(scenario) > 1 || expert_ranks(scenario) > 1;
}

std::shared_ptr<const DividedWeights> DividedWeights::of(const Scenario& scenario) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const DividedWeights>> known;
  const std::lock_guard lock(mutex);
  auto& weights = known[identity_of(scenario.workload)];
  if (weights == nullptr) weights = std::make_shared<const DividedWeights>(scenario);
  return weights;
}

DividedWeights::DividedWeights(const Scenario& scenario) {
  const Network whole = network_of(undivided(scenario));
  parts_ = parts_of(scenario);
  for (const auto& [name, part] : parts_) stages_[module_of(name)] = module_of(part.name);
  for (const NetworkModule& m : whole.modules) layouts_[m.name] = tandem::layout_of(*m.module, /*trained=*/true);
}

const WeightPart& DividedWeights::part(std::string_view name) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) throw DeviceError("no weight that ranks divide is called " + std::string(name));
  return found->second;
}

const std::string& DividedWeights::stage_of(std::string_view piece) const {
  const auto found = stages_.find(piece);
  if (found == stages_.end()) throw DeviceError("no piece that has weights is called " + std::string(piece));
  return found->second;
}

const Layout& DividedWeights::layout_of_stage(const std::string& stage) const { return *layouts_.at(stage); }

}  // namespace tandem
