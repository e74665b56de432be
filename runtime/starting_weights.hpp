// The weights that a run begins with, where its scenario names them: files of safetensors, by the names of the family's
// architectures, or of an import's own module. Must not know where the numbers go.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/scenario/scenario.hpp"
#include "runtime/weights/place_weights.hpp"

namespace tandem {

class StartingWeights {
 public:
  // Read once for each path and network: headers alone. Throws ConfigError with a line for each tensor that is missing,
  // left over, or of another shape than the network's, and for a family whose names no architecture gives.
  static std::shared_ptr<const StartingWeights> of(const Scenario& scenario);
  explicit StartingWeights(const Scenario& scenario);
  // That all files whose checksums were published still have them, where the scenario begins with weights: they are
  // read to their ends, once for all ranks. Says so on standard error, unless `quiet`. Throws ConfigError.
  static void check_files(const Scenario& scenario, bool quiet);

  // Elements [first, first + count) of "block3.norm.weight", in fp32 whatever they are stored in. False, and nothing is
  // written, for a weight that the run adds to the model. May be asked by several threads. Throws DeviceError.
  bool read(std::string_view name, std::int64_t first, std::int64_t count, float* out) const;

 private:
  WeightFiles files_;
  PlacedWeights weights_;
};

}  // namespace tandem
