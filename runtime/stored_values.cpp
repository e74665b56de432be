#include "runtime/stored_values.hpp"

#include <cstring>
#include <mutex>
#include <utility>

#include "core/base/errors.hpp"
#include "core/model/imported/folder.hpp"
#include "core/model/imported/network.hpp"
#include "core/scenario/dirs.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/initial_values.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/starting_weights.hpp"

namespace tandem {
namespace {

// A reader's message says that a checkpoint is damaged; here it is a folder that a person gave.
[[noreturn]] void refuse_file(const DamagedCheckpoint& damage) {
  throw ConfigError(std::string(damage.what()) + "; allowed: what `tandem import` wrote beside " + kNetworkFile);
}

std::vector<std::int64_t> dims_of(const Shape& shape) { return {shape.dims.begin(), shape.dims.end()}; }

}  // namespace

struct StoredValues::Known {
  using Key = std::pair<std::string, std::int64_t>;
  static Key of(const Scenario& scenario) { return {scenario.workload.keys.text("path"), scenario.workload.batch}; }
  std::mutex mutex;
  std::map<Key, std::shared_ptr<const StoredValues>> values;
};

StoredValues::Known& StoredValues::known() {
  static Known known;
  return known;
}

std::shared_ptr<const StoredValues> StoredValues::of(const Scenario& scenario) {
  const std::lock_guard lock(known().mutex);
  auto& values = known().values[Known::of(scenario)];
  if (values == nullptr) values = std::make_shared<const StoredValues>(scenario);
  return values;
}

void StoredValues::forget(const Scenario& scenario) {
  const std::lock_guard lock(known().mutex);
  known().values.erase(Known::of(scenario));
}

StoredValues::StoredValues(const Scenario& scenario) {
  const std::string folder = beside_or_installed(scenario.workload.keys.text("path"));
  const ImportedNetwork import =
      read_import(folder, {scenario.workload.batch, scenario.workload.keys.integer_or("sequence", 0)});
  try {
    file_ = std::make_unique<SafetensorsFile>(file_in(folder, kTensors));
  } catch (const DamagedCheckpoint& damage) {
    refuse_file(damage);
  }
  for (const NetworkModule& m : import.network.modules) {
    for (std::size_t k = 0; k < m.module->weights.size(); ++k) {
      const NamedShape& weight = m.module->weights[k];
      const TensorBytes tensor{m.weight_name(k), weight.shape.type, dims_of(weight.shape), nullptr};
      require(tensor);
      weights_.emplace(m.name + "." + weight.name, tensor);
    }
  }
  for (std::size_t i = 0; i < import.constants.size(); ++i) {
    const Shape& shape = import.network.batch[i].shape;
    constants_.push_back({import.constants[i], shape.type, dims_of(shape), nullptr});
    if (!import.constants[i].empty()) require(constants_.back());
  }
}

void StoredValues::require(const TensorBytes& tensor) const {
  try {
    file_->find(tensor);
  } catch (const DamagedCheckpoint& damage) {
    refuse_file(damage);
  }
}

void StoredValues::read(std::string_view name, std::int64_t first, std::int64_t count, float* out) const {
  const auto found = weights_.find(name);
  if (found == weights_.end()) throw DeviceError("no stored values of " + std::string(name));
  const TensorBytes& tensor = found->second;
  const std::int64_t size = size_of(tensor.type);
  if (tensor.type == DType::F32)
    return file_->read_part(tensor, first * size, count * size, reinterpret_cast<std::byte*>(out));
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * size));
  file_->read_part(tensor, first * size, count * size, bytes.data());
  const auto widen = [&]<typename Number>(Number number) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(&number, bytes.data() + i * size, sizeof(number));
      out[i] = to_float(number);
    }
  };
  tensor.type == DType::BF16 ? widen(BFloat16{}) : widen(Float16{});
}

void StoredValues::read_constant(std::size_t place, void* out) const {
  const TensorBytes& constant = constants_.at(place);
  file_->read_part(constant, 0, constant.size(), static_cast<std::byte*>(out));
}

void fill_first_values(float* out, std::int64_t first, std::int64_t count, const Field& field, std::string_view name,
                       const Scenario& scenario) {
  if (!scenario.weights.empty() && StartingWeights::of(scenario)->read(name, first, count, out)) return;
  if (field.initial.kind == Initial::Kind::Stored)
    StoredValues::of(scenario)->read(name, first, count, out);
  else
    fill_initial(out, first, count, field, name, scenario.seed);
}

}  // namespace tandem
