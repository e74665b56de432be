#include "runtime/imported/call.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <map>
#include <mutex>
#include <string>

#include "core/base/errors.hpp"
#include "runtime/imported/attention.hpp"
#include "runtime/imported/types.hpp"
#include "runtime/primitives/common/random_factors.hpp"
#include "runtime/torch_error.hpp"

namespace tandem {
namespace {

using at::Tensor;

// Operators are found once.
const c10::OperatorHandle& handle_of(const Operator& what) {
  static std::mutex mutex;
  static std::map<const Operator*, c10::OperatorHandle> handles;
  const std::lock_guard lock(mutex);
  if (const auto found = handles.find(&what); found != handles.end()) return found->second;
  const std::string name(what.name);
  const std::size_t dot = name.find('.');
  const auto handle = c10::Dispatcher::singleton().findSchema(
      {"aten::" + name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)});
  if (!handle) throw DeviceError("this LibTorch has no operator " + name);
  return handles.emplace(&what, *handle).first->second;
}

// What an import leaves out: the runtime says where results are.
bool is_left_out(const std::string& name) {
  return name == "device" || name == "layout" || name == "pin_memory" || name == "non_blocking";
}

c10::TypeKind kind_of(const c10::Argument& argument) {
  c10::TypePtr type = argument.type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type->kind();
}

class Arguments final {
 public:
  Arguments(const std::vector<Tensor>& values, Processor processor) : values_(values), processor_(processor) {}

  c10::IValue value(const Argument& argument, const c10::Argument& wanted) const {
    if (std::holds_alternative<Nothing>(argument)) return {};
    if (const auto* reference = std::get_if<ValueRef>(&argument)) return values_[at(reference->value)];
    if (const auto* list = std::get_if<std::vector<ValueRef>>(&argument)) return tensors(*list, wanted);
    if (const auto* number = std::get_if<PlainNumber>(&argument)) return scalar(*number, wanted);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&argument)) return c10::List<std::int64_t>(*list);
    if (const auto* list = std::get_if<std::vector<bool>>(&argument)) return flags(*list);
    if (const auto* element = std::get_if<Element>(&argument)) return static_cast<std::int64_t>(torch_type(*element));
    const std::string& word = std::get<std::string>(argument);
    if (word == "contiguous") return static_cast<std::int64_t>(at::MemoryFormat::Contiguous);
    if (word == "preserve") return static_cast<std::int64_t>(at::MemoryFormat::Preserve);
    return word;
  }
  c10::IValue left_out(const c10::Argument& wanted, bool makes) const {
    if (wanted.name() == "device" && makes) return torch_device(processor_);
    if (wanted.name() == "non_blocking") return false;
    return {};
  }

 private:
  static std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }
  static c10::IValue flags(const std::vector<bool>& list) {
    c10::List<bool> out;
    for (const bool flag : list) out.push_back(flag);
    return out;
  }
  c10::IValue tensors(const std::vector<ValueRef>& list, const c10::Argument& wanted) const {
    const auto of = wanted.type()->cast<c10::ListType>();
    if (of != nullptr && of->getElementType()->kind() == c10::TypeKind::OptionalType) {
      c10::List<std::optional<Tensor>> out;
      for (const ValueRef& item : list)
        out.push_back(item.is_there() ? std::optional<Tensor>(values_[at(item.value)]) : std::nullopt);
      return out;
    }
    c10::List<Tensor> out;
    for (const ValueRef& item : list) out.push_back(values_[at(item.value)]);
    return out;
  }
  static at::Scalar as_scalar(const PlainNumber& number) {
    return std::visit([](auto n) { return at::Scalar(n); }, number);
  }
  static c10::IValue scalar(const PlainNumber& number, const c10::Argument& wanted) {
    switch (kind_of(wanted)) {
      case c10::TypeKind::TensorType: {
        // As Python's numbers among tensors are: they do not decide the type.
        Tensor wrapped = at::scalar_tensor(as_scalar(number), at::TensorOptions(as_scalar(number).type()));
        wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
        return wrapped;
      }
      case c10::TypeKind::BoolType:
        return as_scalar(number).toBool();
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
        return as_scalar(number).toLong();
      case c10::TypeKind::FloatType:
        return as_scalar(number).toDouble();
      default:
        return as_scalar(number);
    }
  }

  const std::vector<Tensor>& values_;
  Processor processor_;
};

bool reads_tensor(const c10::FunctionSchema& schema) {
  return !schema.arguments().empty() && kind_of(schema.arguments()[0]) == c10::TypeKind::TensorType;
}

std::vector<Tensor> dispatched(const ImportedCall& call, const std::vector<Tensor>& values, Processor processor) {
  const c10::OperatorHandle& handle = handle_of(*call.what);
  const c10::FunctionSchema& schema = handle.schema();
  const Arguments arguments(values, processor);
  const bool makes = !reads_tensor(schema);
  torch::jit::Stack stack;
  std::size_t next = 0;
  for (const c10::Argument& wanted : schema.arguments()) {
    if (is_left_out(wanted.name()))
      stack.push_back(arguments.left_out(wanted, makes));
    else if (next < call.arguments.size())
      stack.push_back(arguments.value(call.arguments[next++], wanted));
    else
      throw DeviceError(std::string(call.what->name) + " takes other arguments in this LibTorch");
  }
  handle.callBoxed(stack);
  std::vector<Tensor> results;
  for (const c10::IValue& value : stack) {
    if (value.isTensorList())
      for (const Tensor& item : value.toTensorVector()) results.push_back(item);
    else
      results.push_back(value.toTensor());
  }
  return results;
}

std::vector<Tensor> factors_of(const ImportedCall& call, const TensorType& type, Processor processor,
                               const RandomKey& random) {
  Tensor factors = at::empty({type.dims.data(), type.dims.size()},
                             at::TensorOptions(torch_type(type.element)).device(torch_device(processor)));
  const double rate =
      std::visit([](auto n) { return static_cast<double>(n); }, std::get<PlainNumber>(call.arguments[1]));
  if (!random.draws || rate == 0)
    factors.fill_(1);
  else
    fill_random_factors(factors, stream_key(random, std::get<std::int64_t>(std::get<PlainNumber>(call.arguments[2]))),
                        rate);
  return {factors};
}

void check_results(const ImportedCall& call, const std::vector<Tensor>& results, const ImportedProgram& program) {
  if (results.size() != call.out.size())
    throw DeviceError(std::string(call.what->name) + " gives another number of results in this LibTorch");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const TensorType& planned = program.type(call.out[i]);
    if (!results[i].defined()) continue;
    if (results[i].sizes() != at::IntArrayRef(planned.dims.data(), planned.dims.size()) ||
        results[i].scalar_type() != torch_type(planned.element))
      throw DeviceError(std::string(call.what->name) + " gives " +
                        std::string(c10::toString(results[i].scalar_type())) + " of another shape or type than " +
                        text_of(planned));
  }
}

}  // namespace

std::vector<at::Tensor> perform(const ImportedCall& call, const std::vector<at::Tensor>& values,
                                const ImportedProgram& program, Processor processor, const RandomKey& random) {
  std::vector<at::Tensor> results;
  try {
    if (call.what->name == "attention")
      results = imported_attention(call, values);
    else if (call.what->name == "attention_backward")
      results = imported_attention_backward(call, values);
    else if (call.what->kind == Operator::Kind::Random)
      results = factors_of(call, program.type(call.out[0]), processor, random);
    else
      results = dispatched(call, values, processor);
  } catch (const c10::Error& error) {
    throw DeviceError(std::string(call.what->name) + ": " + message_of(error));
  }
  check_results(call, results, program);
  return results;
}

}  // namespace tandem
