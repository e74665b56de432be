#include "core/model/module.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "core/graph/fused_heads.hpp"

namespace tandem {

bool trains(const Module& module) {
  return std::any_of(module.weights.begin(), module.weights.end(), [](const auto& w) { return w.trained; });
}

bool has_frozen_weights(const Module& module) {
  return std::any_of(module.weights.begin(), module.weights.end(), [](const auto& w) { return !w.trained; });
}

std::shared_ptr<const Module> with_trained(const Module& module, const std::vector<bool>& trained) {
  CHECK(trained.size() == module.weights.size(), module.name, trained.size(), module.weights.size());
  auto changed = std::make_shared<Module>(module);
  for (std::size_t k = 0; k < trained.size(); ++k) changed->weights[k].trained = trained[k];
  return changed;
}

std::shared_ptr<const Layout> layout_of(const Module& module, bool trained) {
  LayoutBuilder layout;
  for (const NamedShape& weight : module.weights) {
    if (weight.trained != trained) continue;
    auto dims = weight.shape.dims;
    if (weight.padding_rows > 0) dims.front() -= weight.padding_rows;
    layout.add(weight.name, std::move(dims), weight.initial, weight.padding_rows);
  }
  return layout.build();
}

std::int32_t field_of(const Module& module, std::size_t weight) {
  const auto end = module.weights.begin() + static_cast<std::ptrdiff_t>(weight);
  const bool trained = end->trained;
  return static_cast<std::int32_t>(
      std::count_if(module.weights.begin(), end, [&](const auto& w) { return w.trained == trained; }));
}

ModuleBuilder::ModuleBuilder(std::string kind, DType type) {
  module_.name = std::move(kind);
  module_.type = type;
}

namespace {

// Times element sizes and factors of kernels, its elements must stay far from overflow.
void require_countable(const Shape& shape) {
  constexpr double kMost = 1125899906842624.0;  // 2^50
  double elements = 1;
  for (const std::int64_t size : shape.dims) elements *= static_cast<double>(size);
  if (elements > kMost)
    throw ConfigError("workload.family: one tensor would have more than 2^50 elements; allowed: smaller sizes");
}

}  // namespace

LocalId ModuleBuilder::add_local(const std::string& name, Shape shape) {
  module_.locals.push_back({name, std::move(shape)});
  return static_cast<LocalId>(module_.locals.size()) - 1;
}

LocalId ModuleBuilder::input(const std::string& name, Shape shape) {
  module_.inputs.push_back(add_local(name, std::move(shape)));
  return module_.inputs.back();
}

LocalId ModuleBuilder::carried(const std::string& name, Shape shape) {
  require_countable(shape);
  module_.carried.push_back(add_local(name, std::move(shape)));
  return module_.carried.back();
}

void ModuleBuilder::require_written_are_carried(const Call& call) const {
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    const bool writes = (call.what->primitive.updates() & bit(i)) != 0;
    const auto& carried = module_.carried;
    CHECK(!writes || std::find(carried.begin(), carried.end(), call.in[i]) != carried.end(), call.name,
          "would overwrite what is not carried from step to step", i);
  }
}

LocalId ModuleBuilder::call(const std::string& name, const std::string& primitive, std::vector<LocalId> in,
                            Attributes how) {
  Call call;
  call.name = name;
  call.what = find_primitive(primitive);
  CHECK(call.what != nullptr, "no such primitive", primitive);
  call.how = std::move(how);
  call.shapes.type = module_.type;
  call.in = std::move(in);
  for (const LocalId local : call.in) {
    CHECK(local >= 0 && local < static_cast<LocalId>(module_.locals.size()), module_.name, name, local);
    call.shapes.in.push_back(module_.locals[static_cast<std::size_t>(local)].shape);
  }
  require_written_are_carried(call);
  call.what->primitive.infer(call.how, call.shapes);
  for (const Shape& shape : call.shapes.out) require_countable(shape);
  for (const NamedShape& weight : call.shapes.weights) require_countable(weight.shape);
  for (const NamedShape& saved : call.shapes.saved) require_countable(saved.shape);
  for (const NamedShape& weight : call.shapes.weights) {
    call.weights.push_back(static_cast<std::int32_t>(module_.weights.size()));
    module_.weights.push_back(weight);
    module_.weights.back().name = weight.name.empty() ? name : name + "." + weight.name;
  }
  for (const Shape& shape : call.shapes.out) call.out.push_back(add_local(name, shape));
  module_.program.push_back(std::move(call));
  return module_.program.back().out.front();
}

LocalId ModuleBuilder::linear(const std::string& name, LocalId x, std::int64_t outputs, bool bias,
                              std::int64_t padding) {
  return call(name, "linear", {x},
              {{"outputs", outputs + padding}, {"bias", std::int64_t{bias}}, {"padding", padding}});
}

LocalId ModuleBuilder::linear_by(const std::string& name, LocalId x, LocalId weight, bool bias, std::int64_t padding) {
  return call(name, "linear", {x, weight},
              {{"shared", std::int64_t{1}}, {"bias", std::int64_t{bias}}, {"padding", padding}});
}

LocalId ModuleBuilder::embedding(const std::string& name, LocalId tokens, std::int64_t rows, std::int64_t columns,
                                 std::int64_t padding) {
  return call(name, "embedding", {tokens}, {{"rows", rows + padding}, {"columns", columns}, {"padding", padding}});
}

LocalId ModuleBuilder::embedding_by(const std::string& name, LocalId tokens, LocalId table) {
  return call(name, "embedding", {tokens, table},
              {{"rows", shape(table).rows()}, {"columns", shape(table).columns()}, {"shared", std::int64_t{1}}});
}

LocalId ModuleBuilder::positions(const std::string& name, LocalId x, std::int64_t sequence, std::int64_t first,
                                 std::int64_t rows) {
  return call(name, "positions", {x}, {{"sequence", sequence}, {"first", first}, {"rows", rows > 0 ? rows : sequence}});
}

LocalId ModuleBuilder::layer_norm(const std::string& name, LocalId x, double epsilon) {
  return call(name, "layer_norm", {x}, {{"epsilon", epsilon}});
}

LocalId ModuleBuilder::attention(const std::string& name, LocalId qkv, const AttentionOptions& o) {
  const bool fits = has_fused_heads(shape(qkv).type, shape(qkv).columns() / 3 / o.heads);
  return call(name, "attention", {qkv},
              {{"heads", o.heads},
               {"sequence", o.sequence},
               {"causal", std::int64_t{o.causal}},
               {"fused", std::int64_t{o.fused && fits}}});
}

LocalId ModuleBuilder::cached_attention(const std::string& name, LocalId qkv, LocalId cache, std::int64_t heads,
                                        std::int64_t position) {
  return call(name, "cached_attention", {qkv, cache}, {{"heads", heads}, {"position", position}});
}

LocalId ModuleBuilder::likeliest(const std::string& name, LocalId logits, std::int64_t padding) {
  return call(name, "likeliest", {logits}, {{"padding", padding}});
}

LocalId ModuleBuilder::activation(const std::string& name, LocalId x, const std::string& kind) {
  return call(name, "activation", {x}, {{"kind", kind}});
}

LocalId ModuleBuilder::add(const std::string& name, LocalId a, LocalId b) { return call(name, "add", {a, b}, {}); }

LocalId ModuleBuilder::cross_entropy(const std::string& name, LocalId logits, LocalId targets, std::int64_t padding) {
  return call(name, "cross_entropy", {logits, targets}, {{"padding", padding}});
}

void ModuleBuilder::begin_as(const std::string& weight, const Initial& initial) {
  const auto found = std::find_if(module_.weights.begin(), module_.weights.end(),
                                  [&](const NamedShape& w) { return w.name == weight; });
  CHECK(found != module_.weights.end(), module_.name, "has no such weight", weight);
  found->initial = initial;
}

void ModuleBuilder::weights_first(const std::vector<std::string>& names) {
  const auto rank = [&](std::size_t index) {
    const std::string& name = module_.weights[index].name;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (name == names[i] || name.starts_with(names[i] + ".")) return i;
    return names.size();
  };
  std::vector<std::size_t> order(module_.weights.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  std::vector<NamedShape> weights;
  std::vector<std::int32_t> moved(order.size());
  for (const std::size_t old : order) {
    moved[old] = static_cast<std::int32_t>(weights.size());
    weights.push_back(std::move(module_.weights[old]));
  }
  module_.weights = std::move(weights);
  for (Call& call : module_.program)
    for (std::int32_t& weight : call.weights) weight = moved[static_cast<std::size_t>(weight)];
}

std::shared_ptr<const Module> ModuleBuilder::build() {
  CHECK(!module_.program.empty(), module_.name, "has no program");
  for (NamedShape& weight : module_.weights) weight.trained = weight.trained && !freezes_;
  return std::make_shared<const Module>(std::move(module_));
}

}  // namespace tandem
