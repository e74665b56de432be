#include "runtime/data.hpp"

#include <utility>

#include "runtime/data_files.hpp"
#include "runtime/data_kind.hpp"
#include "runtime/image_data.hpp"
#include "runtime/made_up_data.hpp"
#include "runtime/stored_values.hpp"
#include "runtime/text_data.hpp"

namespace tandem {

std::int64_t held_out_items(const ValidationOptions& options, std::int64_t items) {
  return options.every > 0 ? static_cast<std::int64_t>(static_cast<double>(items) * options.fraction) : 0;
}

std::unique_ptr<DataSource> open_data(const Scenario& scenario) {
  const SavedData saved = scenario.resume_folder.empty() ? SavedData{} : reread_manifest(scenario.resume_folder).data;
  const DataKind kind = data_kind(scenario);
  if (scenario.workload.keys.has("path")) StoredValues::of(scenario);  // refuses before anything runs
  if (kind == DataKind::MadeUp) return std::make_unique<MadeUpData>(scenario);
  if (kind != DataKind::Images) return std::make_unique<TextData>(scenario, saved);
  Images images = scenario.data_images.empty()
                      ? read_digits(installed_file("digits.csv", scenario, "data.images"), scenario)
                      : read_idx(beside_scenario(scenario.data_images, scenario), scenario);
  return std::make_unique<ImageData>(std::move(images), scenario, saved);
}

}  // namespace tandem
