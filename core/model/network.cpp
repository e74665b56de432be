#include "core/model/network.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace tandem {

LocalId ModuleScope::in(const std::string& name, const Signal& signal) {
  sources_.push_back(signal.source);
  return input(name, signal.shape);
}

Signal NetworkBuilder::batch(const std::string& name, Shape shape) {
  const auto index = static_cast<std::int32_t>(network_.batch.size());
  network_.batch.push_back({name, shape});
  return {{Source::From::Batch, index, 0}, std::move(shape)};
}

Signal NetworkBuilder::module(const std::string& name, const std::string& kind,
                              const std::function<void(ModuleScope&)>& program, bool recomputable) {
  ModuleScope scope(kind, network_.type);
  program(scope);
  std::shared_ptr<const Module> module = scope.build();
  for (const NetworkModule& before : network_.modules)
    if (*before.module == *module) module = before.module;
  CHECK(scope.sources().size() == module->inputs.size(), name, "has ports that read nothing", module->inputs.size());
  network_.modules.push_back({name, std::move(module), scope.sources(), recomputable});
  return output(0);
}

Signal NetworkBuilder::output(std::size_t place) const {
  const Module& module = *network_.modules.back().module;
  const auto index = static_cast<std::int32_t>(network_.modules.size()) - 1;
  const LocalId local = module.outputs.at(place);
  return {{Source::From::Output, index, static_cast<std::int32_t>(place)},
          module.locals[static_cast<std::size_t>(local)].shape};
}

Signal NetworkBuilder::weight(const std::string& module, const std::string& name) const {
  for (std::size_t i = 0; i < network_.modules.size(); ++i) {
    if (network_.modules[i].name != module) continue;
    const std::vector<NamedShape>& weights = network_.modules[i].module->weights;
    const auto found = std::find_if(weights.begin(), weights.end(), [&](const auto& w) { return w.name == name; });
    CHECK(found != weights.end(), module, "has no such weight", name);
    const auto place = static_cast<std::int32_t>(found - weights.begin());
    return {{Source::From::Weight, static_cast<std::int32_t>(i), place}, found->shape};
  }
  CHECK(false, "no such module", module);
}

Network NetworkBuilder::finish() {
  CHECK(!network_.modules.empty(), network_.family, "has no modules");
  return std::move(network_);
}

}  // namespace tandem
