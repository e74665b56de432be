// Which weights are trained: those whose names match a pattern of workload.trained, and adapters. The others are
// frozen: they have no gradients and no states, and nothing is computed that only their gradients need.
#include <algorithm>
#include <utility>

#include "core/base/errors.hpp"
#include "core/model/adapters.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/common/network_transform.hpp"

namespace tandem {
namespace {

class Choice {
 public:
  explicit Choice(const std::vector<std::string>& patterns) : patterns_(patterns), used_(patterns.size()) {}
  bool trains(const NetworkModule& m, std::size_t weight) {
    const NamedShape& w = m.module->weights[weight];
    if (!w.trained) return false;  // the family says so
    if (is_adapter(w)) return true;
    bool any = false;
    for (std::size_t i = 0; i < patterns_.size(); ++i)
      if (matches(patterns_[i], m.weight_name(weight))) used_[i] = any = true;
    return any;
  }
  // `example`: a name that a weight has.
  void require_used(const std::string& example) const {
    for (std::size_t i = 0; i < patterns_.size(); ++i)
      if (!used_[i])
        throw ConfigError("workload.trained." + std::to_string(i) + ": \"" + patterns_[i] +
                          "\" matches no weight; allowed: names and patterns of names such as " + example + " and *" +
                          example.substr(example.rfind('.') == std::string::npos ? 0 : example.rfind('.')));
  }

 private:
  const std::vector<std::string>& patterns_;
  std::vector<bool> used_;
};

Network on_network(Network network, const WorkloadOptions& w) {
  if (w.trained.empty() && w.lora.rank == 0) return network;
  Choice choice(w.trained);
  ChangedModules<std::vector<bool>> changed;
  bool any = false;
  std::string example;
  for (NetworkModule& m : network.modules) {
    std::vector<bool> trained(m.module->weights.size());
    for (std::size_t k = 0; k < trained.size(); ++k) {
      trained[k] = choice.trains(m, k);
      any = any || trained[k];
      if (example.empty() || m.recomputable) example = m.weight_name(k);
    }
    if (!trained.empty()) m.module = changed.of(m.module, trained, [&] { return with_trained(*m.module, trained); });
  }
  choice.require_used(example);
  if (!any) throw ConfigError("workload.trained: nothing is trained; allowed: patterns that match a weight");
  return network;
}

}  // namespace
}  // namespace tandem

TANDEM_NETWORK_TRANSFORM(trained, on_network, "Trains some weights alone: the others are frozen",
                         "workload.trained: [pattern, ...]")
