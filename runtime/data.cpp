#include "runtime/data.hpp"

#include "runtime/data_files.hpp"
#include "runtime/image_data.hpp"
#include "runtime/text_data.hpp"

namespace tandem {

std::int64_t held_out_items(const ValidationOptions& options, std::int64_t items) {
  return options.every > 0 ? static_cast<std::int64_t>(static_cast<double>(items) * options.fraction) : 0;
}

std::unique_ptr<DataSource> open_data(const Scenario& scenario) {
  if (scenario.workload.family != "mlp") return std::make_unique<TextData>(scenario);
  if (!scenario.data_images.empty())
    return std::make_unique<ImageData>(read_idx(beside_scenario(scenario.data_images, scenario), scenario), scenario);
  return std::make_unique<ImageData>(read_digits(installed_file("digits.csv", scenario, "data.images"), scenario),
                                     scenario);
}

}  // namespace tandem
