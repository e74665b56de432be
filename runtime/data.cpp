#include "runtime/data.hpp"

#include "runtime/data_files.hpp"
#include "runtime/image_data.hpp"
#include "runtime/text_data.hpp"

namespace tandem {

std::unique_ptr<DataSource> open_data(const Scenario& scenario) {
  if (scenario.workload.family != "mlp") return std::make_unique<TextData>(scenario);
  if (!scenario.data_images.empty())
    return std::make_unique<ImageData>(read_idx(beside_scenario(scenario.data_images, scenario), scenario), scenario);
  return std::make_unique<ImageData>(read_digits(installed_file("digits.csv", scenario, "data.images"), scenario),
                                     scenario);
}

}  // namespace tandem
