#include "runtime/data_kind.hpp"

#include "core/transforms/generation/generation_keys.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

Work load_of(const Scenario& scenario) {
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  return family != nullptr && family->network != nullptr ? network_of(scenario).load : Work{};
}

}  // namespace

DataKind data_kind(const Scenario& scenario) {
  const Work load = load_of(scenario);
  if (load.body == "masked_tokens.load") return DataKind::MaskedText;
  if (load.body == "imported.load" && generates(scenario)) return DataKind::Text;
  if (load.body == "synthetic.load" || load.body == "imported.load") return DataKind::MadeUp;
  if (load.body != "images.load") return DataKind::Text;
  // A family with a key for the numbers of an image has those of the data set.
  const bool fits =
      scenario.workload.keys.has("inputs") || !scenario.data_images.empty() || load.sizes.at(1) == kInstalledPixels;
  return fits ? DataKind::Images : DataKind::MadeUp;
}

std::int64_t pixels_of(const Scenario& scenario) { return load_of(scenario).sizes.at(1); }

}  // namespace tandem
