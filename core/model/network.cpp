#include "core/model/network.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"

namespace tandem {

std::string NetworkModule::weight_name(std::size_t weight) const {
  return weight < weight_names.size() ? weight_names[weight] : name + "." + module->weights.at(weight).name;
}

// A value that is read twice is one port: its gradient is one value, which one op writes once.
LocalId ModuleScope::in(const std::string& name, const Signal& signal) {
  const auto found = std::find(sources_.begin(), sources_.end(), signal.source);
  if (found != sources_.end()) return input_of(static_cast<std::size_t>(found - sources_.begin()));
  sources_.push_back(signal.source);
  return input(name, signal.shape);
}

void NetworkBuilder::load(const std::string& what, DType type, std::vector<std::int64_t> sizes,
                          std::int64_t moved_bytes) {
  network_.load = {what + ".load", type, std::move(sizes), {memory_kernel(moved_bytes)}, nullptr};
}

void NetworkBuilder::load_made_up() {
  std::vector<std::int64_t> below;
  std::int64_t bytes = 0;
  for (const BatchTensor& tensor : network_.batch) below.push_back(tensor.below), bytes += tensor.shape.bytes();
  load("synthetic", network_.type, std::move(below), bytes);
}

Signal NetworkBuilder::batch(const std::string& name, Shape shape, std::int64_t below) {
  const auto index = static_cast<std::int32_t>(network_.batch.size());
  CHECK(below >= 0 && (below > 0) == (shape.type == DType::I64), name, "integers are below something", below);
  network_.batch.push_back({name, shape, below});
  return {{Source::From::Batch, index, 0}, std::move(shape)};
}

Signal NetworkBuilder::media(const std::string& modality, const std::string& name, Shape shape,
                             std::int64_t rows_of_item) {
  Signal signal = batch(name, std::move(shape));
  network_.batch.back().media = modality;
  network_.batch.back().rows_of_item = rows_of_item;
  return signal;
}

Signal NetworkBuilder::module(const std::string& name, const std::string& kind,
                              const std::function<void(ModuleScope&)>& program, bool recomputable) {
  ModuleScope scope(kind, network_.type);
  program(scope);
  if (frozen_) scope.freeze();
  const std::shared_ptr<const Module> module = shared(scope.build());
  CHECK(scope.sources().size() == module->inputs.size(), name, "has ports that read nothing", module->inputs.size());
  network_.modules.push_back({name, module, scope.sources(), recomputable && !frozen_});
  return output(0);
}

Signal NetworkBuilder::again(const std::string& name, const Signal& input) {
  NetworkModule another = network_.modules.back();
  const Module& module = *another.module;
  CHECK(!module.inputs.empty() && module.locals[static_cast<std::size_t>(module.inputs[0])].shape == input.shape, name,
        "would read another shape");
  another.name = name;
  another.inputs[0] = input.source;
  network_.modules.push_back(std::move(another));
  return output(0);
}

// Networks have many modules of few shapes: each is compared with one of a shape.
std::shared_ptr<const Module> NetworkBuilder::shared(std::shared_ptr<const Module> module) {
  for (const std::shared_ptr<const Module>& shape : shapes_)
    if (*shape == *module) return shape;
  shapes_.push_back(module);
  return module;
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
  if (network_.load.body.empty() && !network_.batch.empty()) load_made_up();
  return std::move(network_);
}

}  // namespace tandem
