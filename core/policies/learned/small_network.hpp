// The network of the learned policy: from a step's costs to its places. One hidden layer; a file in safetensors'
// format. Must not know how it is trained.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/policies/common/places.hpp"

namespace tandem {

class SmallNetwork {
 public:
  static constexpr std::size_t kInputs = 6, kHidden = 8, kOutputs = 3;
  static constexpr std::size_t kWeights = kHidden * (kInputs + 1) + kOutputs * (kHidden + 1);

  // All zeros: everything on the device, nothing elsewhere.
  SmallNetwork() : weights_(kWeights, 0.0F) {}
  // `weights`: kWeights of them, hidden.weight [8, 6], hidden.bias, output.weight [3, 8], output.bias.
  explicit SmallNetwork(std::vector<float> weights);
  // Throws ConfigError for a file that is none, or of another network.
  static SmallNetwork read(const std::string& path);
  std::string file() const;

  // Whatever its numbers: places that exist.
  Places places(const StepCosts& costs) const;
  const std::vector<float>& weights() const { return weights_; }

 private:
  std::vector<float> weights_;
};

}  // namespace tandem
