#include "runtime/divided_weights.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/stored_values.hpp"

namespace tandem {
namespace {

// As one device trains it.
Scenario undivided(Scenario scenario) {
  WorkloadOptions& w = scenario.workload;
  w.tensor = 1;
  for (const char* key : {"sequence", "expert", "expert_imbalance"}) w.parallel[key] = 1;
  w.parallel["sequence_kind"] = "ulysses", w.parallel["ring_layout"] = "striped", w.parallel["attention"] = "heads";
  return scenario;
}

// What decides which weights there are.
std::string identity_of(const WorkloadOptions& w) {
  std::string text = w.family + "\n" + std::string(name_of(w.precision)) + "\n" + std::to_string(w.tensor);
  for (const auto& [key, value] : w.parallel.all()) text += "\n" + key + ": " + KeyValues::words(value);
  for (const auto& [key, value] : w.keys.all()) text += "\n" + key + ": " + KeyValues::words(value);
  for (const std::string& pattern : w.trained) text += "\n" + pattern;
  return text;
}

}  // namespace

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

DividedWeights::DividedWeights(const Scenario& scenario)
    : parts_(weight_parts(network_of(undivided(scenario)), network_of(scenario))) {}

const WeightPart& DividedWeights::part(std::string_view name) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) throw DeviceError("no weight that ranks divide is called " + std::string(name));
  return found->second;
}

// A block of the part at a time lies in a row in the whole weight, behind whose rows there may be some of zeros.
void DividedWeights::fill_first(float* out, std::int64_t first, std::int64_t count, std::string_view name,
                                std::int64_t own, const Scenario& scenario) const {
  const WeightPart& p = part(name);
  const Scenario whole = undivided(scenario);
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t at = first + done, place = p.place(at, own);
    const std::int64_t some = std::min(count - done, p.block - at % p.block);
    const std::int64_t there = std::clamp<std::int64_t>(p.whole.elements() - place, 0, some);
    if (there > 0) fill_first_values(out + done, place, there, p.whole, p.name, whole);
    std::fill_n(out + done + there, some - there, 0.0f);
    done += some;
  }
}

}  // namespace tandem
