// Low-rank adapters beside linear layers (core/model/adapters.hpp). All other weights are frozen, but for those that
// workload.trained names.
#include <algorithm>
#include <set>
#include <utility>

#include "core/base/errors.hpp"
#include "core/model/adapters.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/common/network_transform.hpp"

namespace tandem {
namespace {

// As PEFT takes it: the end of a layer's name, in whole parts; or a pattern of all of it.
bool means(const std::string& target, const std::string& layer) {
  return layer == target || layer.ends_with("." + target) || matches(target, layer);
}

std::string last_part(const std::string& layer) { return layer.substr(layer.rfind('.') + 1); }

class Targets {
 public:
  explicit Targets(const std::vector<std::string>& targets) : targets_(targets), used_(targets.size()) {}
  // By place of the module's weights. None named: all linear layers of what repeats, which leaves out the output layer.
  std::vector<bool> of(const NetworkModule& m) {
    std::vector<bool> chosen(m.module->weights.size());
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      if (!adapts(*m.module, k)) continue;
      const std::string layer = layer_of(m.weight_name(k));
      names_.insert(last_part(layer));
      chosen[k] = targets_.empty() ? m.recomputable : means_one(layer);
      any_ = any_ || chosen[k];
    }
    return chosen;
  }
  void require_used() const {
    std::string names;
    for (const std::string& name : names_) names += (names.empty() ? "" : ", ") + name;
    const std::string allowed = names.empty() ? "a network with linear layers" : "linear layers, here " + names;
    for (std::size_t i = 0; i < targets_.size(); ++i)
      if (!used_[i])
        throw ConfigError("workload.lora.targets." + std::to_string(i) + ": \"" + targets_[i] +
                          "\" is no linear layer; allowed: " + allowed);
    if (!any_) throw ConfigError("workload.lora: no block has a linear layer; allowed: targets that are " + allowed);
  }

 private:
  bool means_one(const std::string& layer) {
    bool any = false;
    for (std::size_t i = 0; i < targets_.size(); ++i)
      if (means(targets_[i], layer)) used_[i] = any = true;
    return any;
  }
  const std::vector<std::string>& targets_;
  std::vector<bool> used_;
  bool any_ = false;
  std::set<std::string> names_;
};

// A module keeps the names of its weights, if it was given any; adapters are named after their layers.
void name_adapters(NetworkModule& m, const std::vector<bool>& chosen) {
  if (m.weight_names.empty()) return;
  for (std::size_t k = 0; k < chosen.size(); ++k)
    if (chosen[k])
      for (const char* part : {kAdapterA, kAdapterB}) m.weight_names.push_back(layer_of(m.weight_names[k]) + part);
}

Network on_network(Network network, const WorkloadOptions& w) {
  if (w.lora.rank == 0) return network;
  const AdapterShape shape{w.lora.rank, w.lora.alpha / static_cast<double>(w.lora.rank)};
  Targets targets(w.lora.targets);
  ChangedModules<std::vector<bool>> changed;
  for (NetworkModule& m : network.modules) {
    const std::vector<bool> chosen = targets.of(m);
    if (std::find(chosen.begin(), chosen.end(), true) == chosen.end()) continue;
    m.module = changed.of(m.module, chosen, [&] { return adapted(*m.module, chosen, shape); });
    name_adapters(m, chosen);
  }
  targets.require_used();
  return network;
}

}  // namespace
}  // namespace tandem

TANDEM_NETWORK_TRANSFORM(lora, on_network, "Low-rank adapters beside linear layers, which alone are trained",
                         "workload.lora: {rank, alpha, targets}")
