#include "core/policies/learned/small_network.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

struct Stored {
  const char* name;
  std::vector<std::size_t> shape;
  std::size_t count() const { return shape.size() == 2 ? shape[0] * shape[1] : shape[0]; }
};
std::vector<Stored> stored() {
  using N = SmallNetwork;
  return {{"hidden.weight", {N::kHidden, N::kInputs}},
          {"hidden.bias", {N::kHidden}},
          {"output.weight", {N::kOutputs, N::kHidden}},
          {"output.bias", {N::kOutputs}}};
}

// What each could do beside the device's work, as logarithms of shares of it: what a policy weighs, whatever the size.
std::array<double, SmallNetwork::kInputs> inputs_of(const StepCosts& c) {
  const double device = std::max(1.0, static_cast<double>(c.micro_batches) * c.device + c.update);
  const auto share = [&](double ns) { return std::log10((ns + 1e-3 * device) / device); };
  return {share(c.decoding),   share(c.remote_decoding),
          share(c.transforms), share(c.device_transforms),
          share(c.cpu),        std::log2(static_cast<double>(c.micro_batches))};
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

SmallNetwork::SmallNetwork(std::vector<float> weights) : weights_(std::move(weights)) {
  CHECK(weights_.size() == kWeights, weights_.size(), kWeights);
}

Places SmallNetwork::places(const StepCosts& costs) const {
  const auto x = inputs_of(costs);
  std::array<double, kHidden> hidden{};
  std::array<double, kOutputs> out{};
  const float* w = weights_.data();
  for (std::size_t h = 0; h < kHidden; ++h)
    for (std::size_t i = 0; i < kInputs; ++i) hidden[h] += static_cast<double>(*w++) * x[i];
  for (double& h : hidden) h = std::tanh(h + static_cast<double>(*w++));
  for (double& o : out)
    for (const double h : hidden) o += static_cast<double>(*w++) * h;
  for (double& o : out) o += static_cast<double>(*w++);
  Places places;
  places.transforms_on_workers = out[0] > 0;
  // A twentieth is the step of best_places, too. What does not exist gets nothing.
  constexpr double kShares = 20;
  if (costs.remote_decoding > 0)
    places.remote_share = std::clamp(std::round((2 * sigmoid(out[1]) - 1) * kShares), 0.0, kShares) / kShares;
  if (costs.cpu > 0)
    places.cpu_micro_batches =
        std::clamp<std::int64_t>(std::llround((2 * sigmoid(out[2]) - 1) * static_cast<double>(costs.micro_batches - 1)),
                                 0, costs.micro_batches - 1);
  return places;
}

std::string SmallNetwork::file() const {
  Json header = Json::object();
  std::size_t at = 0;
  for (const Stored& part : stored()) {
    const std::size_t end = at + part.count() * sizeof(float);
    header[part.name] = {{"dtype", "F32"}, {"shape", part.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  std::string file(sizeof size, '\0');
  std::memcpy(file.data(), &size, sizeof size);
  file += text;
  file.append(reinterpret_cast<const char*>(weights_.data()), weights_.size() * sizeof(float));
  return file;
}

SmallNetwork SmallNetwork::read(const std::string& path) {
  constexpr std::int64_t kMostBytes = 1 << 16;
  const auto fail = [&](const std::string& problem) {
    throw ConfigError("policy.network: " + path + " " + problem + "; allowed: a file that `tandem train-policy` wrote");
  };
  std::string bytes;
  try {
    bytes = read_input_file(path, kMostBytes);
  } catch (const UnreadableFile& error) {
    fail(error.what());
  }
  // The same header, to the byte: this network is the only one.
  const std::string wanted = SmallNetwork().file();
  const std::size_t header = wanted.size() - kWeights * sizeof(float);
  if (bytes.size() != wanted.size() || bytes.compare(0, header, wanted, 0, header) != 0)
    fail("is not the network of this policy");
  std::vector<float> weights(kWeights);
  std::memcpy(weights.data(), bytes.data() + header, kWeights * sizeof(float));
  for (const float weight : weights)
    if (!std::isfinite(weight)) fail("has a weight that is no number");
  return SmallNetwork(std::move(weights));
}

}  // namespace tandem
