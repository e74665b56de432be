#include "core/transforms/tensor/weight_parts.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {
namespace {

Field field_of_weight(const Module& module, std::size_t weight) {
  const auto layout = layout_of(module, module.weights[weight].trained);
  return layout->fields[static_cast<std::size_t>(field_of(module, weight))];
}

// Of whose outputs a rank has some of each: a linear layer's sections, or experts; else 1.
std::int64_t sections_of(const Module& module, std::size_t weight, const Shape& whole) {
  const Shape& part = module.weights[weight].shape;
  const bool of_experts = part.dims.size() == 3 && part.dims.front() == whole.dims.front();
  if (of_experts) return part.dims.front();
  for (const Call& call : module.program)
    if (std::count(call.weights.begin(), call.weights.end(), static_cast<std::int32_t>(weight)) > 0)
      return call.how.integer("sections", 1);
  return 1;
}

// By rows, a part of each section at a time, or by columns.
void divide(const Shape& whole, const Shape& part, std::int64_t sections, WeightPart& to) {
  const bool by_columns = whole.dims.size() > 1 && part.columns() < whole.columns();
  to.block = by_columns ? part.columns() : part.elements() / sections;
  to.stride = by_columns ? whole.columns() : whole.elements() / sections;
  if (whole == part) to.block = to.stride = whole.elements();
}

}  // namespace

WeightParts weight_parts(const Network& whole, const Network& divided) {
  WeightParts parts;
  std::map<std::string, std::pair<const NetworkModule*, std::size_t>> found;
  for (const NetworkModule& m : whole.modules)
    for (std::size_t k = 0; k < m.module->weights.size(); ++k) found[m.weight_name(k)] = {&m, k};
  for (const NetworkModule& m : divided.modules)
    for (std::size_t k = 0; k < m.module->weights.size(); ++k) {
      const auto of = found.find(m.weight_name(k));
      CHECK(of != found.end(), m.name, m.weight_name(k));
      const auto& [module, place] = of->second;
      const NamedShape& weight = module->module->weights[place];
      WeightPart& part = parts[m.name.substr(0, m.name.find('.')) + "." + m.module->weights[k].name];
      part.name = module->name + "." + weight.name;
      part.whole = field_of_weight(*module->module, place);
      divide(weight.shape, m.module->weights[k].shape, sections_of(*m.module, k, weight.shape), part);
    }
  return parts;
}

WeightParts weight_parts(const Network& whole, const Network& one_way, const Network& two_ways,
                         std::int64_t neighbours) {
  const WeightParts parts = weight_parts(whole, one_way);
  WeightParts both;
  for (const auto& [name, own] : weight_parts(one_way, two_ways)) {
    WeightPart& part = both[name] = parts.at(own.name);
    part.neighbours = neighbours, part.own_block = own.block, part.own_stride = own.stride;
  }
  return both;
}

}  // namespace tandem
