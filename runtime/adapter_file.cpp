#include "runtime/adapter_file.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "core/model/adapters.hpp"
#include "core/scenario/dirs.hpp"
#include "core/scenario/weight_names.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/checkpoint/json_text.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/checkpoint/saved_file.hpp"

namespace tandem {
namespace {

// Every name of a model that PEFT wraps begins with these two wrappers'.
constexpr const char* kWrappers = "base_model.model.";

struct Adapters {
  std::vector<TensorBytes> tensors;
  std::vector<std::string> layers;
  bool are_published = true;  // a model of PEFT's kind has layers of these names
};

// What PEFT's models call a layer; its own name, if none has it.
class LayerNames {
 public:
  explicit LayerNames(const Scenario& scenario) : is_import_(scenario.workload.keys.has("path")) {
    if (is_import_) return;
    const WorkloadOptions workload = completed(scenario.workload);
    for (WeightNames& names : weight_names_of(workload.family, model_dirs()))
      if (names.is_of(workload.keys)) architectures_.push_back(std::move(names));
  }
  std::optional<std::string> of(const std::string& layer) const {
    if (is_import_) return layer;
    for (const WeightNames& names : architectures_)
      if (auto name = names.layer_of(layer)) return name;
    return std::nullopt;
  }

 private:
  bool is_import_;
  std::vector<WeightNames> architectures_;
};

// In the order of the network. `values`: by Tandem's own names, and outlive the result.
Adapters adapters_of(const Network& network, const LayerNames& names,
                     const std::map<std::string, std::vector<float>>& values) {
  Adapters out;
  for (const NetworkModule& m : network.modules)
    for (std::size_t k = 0; k < m.module->weights.size(); ++k) {
      const NamedShape& weight = m.module->weights[k];
      if (!is_adapter(weight)) continue;
      const std::vector<float>& numbers = values.at(m.name + "." + weight.name);
      std::vector<std::int64_t> shape(weight.shape.dims.begin(), weight.shape.dims.end());
      shape.front() -= weight.padding_rows;
      const std::string own = m.weight_name(k), part = own.ends_with(kAdapterA) ? kAdapterA : kAdapterB;
      const std::string layer = own.substr(0, own.size() - part.size());
      const std::optional<std::string> published = names.of(layer);
      out.are_published = out.are_published && published.has_value();
      const std::string name = published.value_or(layer);
      out.tensors.push_back(
          {kWrappers + name + part, DType::F32, std::move(shape), reinterpret_cast<const std::byte*>(numbers.data())});
      if (part == kAdapterA) out.layers.push_back(name);
    }
  return out;
}

void write(const std::string& path, const std::vector<std::pair<const void*, std::int64_t>>& pieces) {
  SavedFile file(path);
  for (const auto& [bytes, count] : pieces) file.write(bytes, count);
  file.finish();
}

void write_tensors(const std::string& path, const std::vector<TensorBytes>& tensors) {
  const std::string header = safetensors_header(tensors);
  std::vector<std::pair<const void*, std::int64_t>> pieces = {{header.data(), std::ssize(header)}};
  for (const TensorBytes& tensor : tensors) pieces.emplace_back(tensor.bytes, tensor.size());
  write(path, pieces);
}

void write_config(const std::string& path, const Scenario& scenario, const std::vector<std::string>& layers) {
  const LoraOptions& lora = scenario.workload.lora;
  JsonText json = JsonText::object(), targets = JsonText::array();
  for (const std::string& layer : layers) targets.push_back(JsonText::text(layer));
  json.append("peft_type", JsonText::text("LORA"))
      .append("base_model_name_or_path", JsonText::text(scenario.weights))
      .append("r", JsonText::number(lora.rank))
      .append("lora_alpha", JsonText::number(lora.alpha))
      .append("lora_dropout", JsonText::number(0.0))
      .append("bias", JsonText::text("none"))
      .append("target_modules", std::move(targets));
  const std::string text = json.dump(/*lines=*/true) + "\n";
  write(path, {{text.data(), std::ssize(text)}});
}

void require(const std::error_code& error, const std::string& what, const std::string& path) {
  if (error) fail_at(what, path, error.value());
}

}  // namespace

std::string save_adapters(Training& training, const Scenario& scenario) {
  if (scenario.workload.lora.rank == 0 || scenario.checkpoint.directory.empty()) return "";
  const auto values = training.parameters(
      [](const std::string& field) { return field.ends_with(kAdapterA) || field.ends_with(kAdapterB); });
  const Adapters adapters = adapters_of(network_of(scenario), LayerNames(scenario), values);
  const std::string folder = scenario.checkpoint.directory + "/adapters", fresh = folder + ".writing";
  std::error_code error;
  std::filesystem::remove_all(fresh, error);
  require(error, "cannot remove", fresh);
  std::filesystem::create_directories(fresh, error);
  require(error, "cannot make", fresh);
  write_tensors(fresh + "/adapter_model.safetensors", adapters.tensors);
  write_config(fresh + "/adapter_config.json", scenario, adapters.layers);
  sync_folder(fresh);
  std::filesystem::remove_all(folder, error);
  require(error, "cannot remove", folder);
  std::filesystem::rename(fresh, folder, error);
  require(error, "cannot name", folder);
  sync_folder(scenario.checkpoint.directory);
  const std::string what = "adapters are in " + folder;
  return adapters.are_published ? what : what + ", by names that no model of PEFT's has";
}

}  // namespace tandem
