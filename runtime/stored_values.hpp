// What an imported network's folder holds beside its programs: first values of weights, and constants of its batches.
// Must not know passes or ops.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scenario/scenario.hpp"
#include "runtime/checkpoint/safetensors.hpp"

namespace tandem {

class StoredValues {
 public:
  // Of an imported workload; read once for each folder. Throws ConfigError for a file that lacks what the network
  // needs.
  static std::shared_ptr<const StoredValues> of(const Scenario& scenario);
  // Its folder may change, or go: what was read of it is no longer known.
  static void forget(const Scenario& scenario);

  // Elements [first, first + count) of "block3.norm.weight". May be asked by several threads.
  void read(std::string_view name, std::int64_t first, std::int64_t count, float* out) const;
  // All of a tensor of the batch, by its place.
  void read_constant(std::size_t place, void* out) const;

  explicit StoredValues(const Scenario& scenario);

 private:
  struct Known;
  static Known& known();
  void require(const TensorBytes& tensor) const;
  std::unique_ptr<SafetensorsFile> file_;
  std::map<std::string, TensorBytes, std::less<>> weights_;
  std::vector<TensorBytes> constants_;  // by place; data has no name
};

// The first values of a field, wherever they come from: the scenario's weights (starting_weights.hpp), the
// folder, or made (initial_values.hpp).
void fill_first_values(float* out, std::int64_t first, std::int64_t count, const Field& field, std::string_view name,
                       const Scenario& scenario);

}  // namespace tandem
