#include "runtime/executors/not_finite.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/formats/layout.hpp"
#include "core/formats/sums.hpp"
#include "core/scenario/schedule.hpp"
#include "runtime/optimizer/gradient_checks.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {
namespace {

bool is_float(DType type) { return type == DType::F32 || type == DType::BF16 || type == DType::F16; }

template <class Number>
double number_at(const std::byte* numbers, std::int64_t index) {
  Number number;
  std::memcpy(&number, numbers + index * static_cast<std::int64_t>(sizeof number), sizeof number);
  return to_float(number);
}

double number_of(const std::byte* numbers, DType type, std::int64_t index) {
  if (type == DType::BF16) return number_at<BFloat16>(numbers, index);
  if (type == DType::F16) return number_at<Float16>(numbers, index);
  return number_at<float>(numbers, index);
}

// Without the sign, which says nothing.
std::string name_of_number(double number) { return std::isnan(number) ? "nan" : "inf"; }

std::string stage_of(const std::string& tensor) { return tensor.substr(0, tensor.find('.')); }

// Where an op of its own looks at final gradients, that is enough.
bool looks_at_gradients(const Scenario& scenario) {
  return !scales_loss(scenario) && scenario.optimizer.clip_norm == 0;
}

}  // namespace

std::optional<std::int64_t> first_not_finite(const std::byte* numbers, DType type, std::int64_t count) {
  if (!is_float(type)) return std::nullopt;
  for (std::int64_t first = 0; first < count; first += kNormBlock) {
    const std::int64_t block = std::min(kNormBlock, count - first);
    if (check_gradient(numbers + first * size_of(type), type, block).finite) continue;
    for (std::int64_t i = first; i < first + block; ++i)
      if (!std::isfinite(number_of(numbers, type, i))) return i;
  }
  return std::nullopt;
}

std::string not_finite_field(const Tensor& tensor, const std::byte* begin, std::int64_t first, std::int64_t elements) {
  if (tensor.layout == nullptr) return "";
  for (const Field& field : tensor.layout->fields) {
    const HeldElements held = held_elements(field, tensor);
    const std::int64_t from = std::max(held.first, first), to = std::min(held.first + held.count, first + elements);
    if (from >= to) continue;
    const std::byte* numbers = begin + (from - first) * size_of(tensor.type);
    if (const auto at = first_not_finite(numbers, tensor.type, to - from))
      return stage_of(tensor.name) + "." + field.name + " has " + name_of_number(number_of(numbers, tensor.type, *at));
  }
  return "";
}

std::string not_finite_result(const Graph& graph, const Op& op, const Scenario& scenario, std::int64_t result) {
  if (!op.has_result) return "";
  const auto number = std::bit_cast<double>(result);
  if (std::isfinite(number)) return "";
  const std::string name = name_of_number(number);
  if (op.phase == Phase::Forward || op.phase == Phase::Recompute) return "the loss is " + name;
  if (op.phase == Phase::Evaluate) return "the loss on held-out data is " + name;
  if (op.phase != Phase::Reduce || scales_loss(scenario)) return "";
  if (op.layer == kNone) return "the gradient norm is " + name;
  return "the gradient of " + stage_of(std::string(graph.label(op.label))) + " is not finite";
}

std::string not_finite_writes(const BodyCall& call) {
  const Op& op = call.op;
  const bool backward = op.phase == Phase::Backward && looks_at_gradients(call.scenario);
  if ((op.phase != Phase::Forward && !backward) || op.has_result || op.writes.empty()) return "";
  const Value& value = call.graph.value(op.writes[0].value);
  const Tensor& tensor = call.graph.tensor(value.tensor);
  if (!is_float(tensor.type)) return "";
  const std::int64_t elements = value.bytes / size_of(tensor.type);
  if (!backward && tensor.role != Role::Activation) return "";
  if (backward) {
    const std::string field = not_finite_field(tensor, call.writes[0], 0, elements);
    return field.empty() ? "" : "the gradient of " + field;
  }
  const auto at = first_not_finite(call.writes[0], tensor.type, elements);
  if (!at) return "";
  return "the output of " + stage_of(tensor.name) + " has " +
         name_of_number(number_of(call.writes[0], tensor.type, *at));
}

std::string not_finite_update(const Graph& graph, const Op& op, std::int64_t mark) {
  if (mark == 0) return "";
  const Tensor& tensor = graph.tensor_of(op.writes[0].value);
  const std::string stage = stage_of(tensor.name);
  if (tensor.layout == nullptr) return "the update of " + stage + " is not finite";
  const std::int64_t element = mark - 1;
  for (const Field& field : tensor.layout->fields) {
    const std::int64_t begin = field.offset / size_of(DType::F32);
    if (element >= begin && element < begin + field.elements())
      return "the gradient of " + stage + "." + field.name + ", or its update, is not finite";
  }
  return "";  // between fields
}

}  // namespace tandem
