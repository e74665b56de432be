#include "core/model/imported/linear_use.hpp"

#include <variant>
#include <vector>

namespace tandem {
namespace {

std::int32_t tensor_in(const ImportedCall& call, std::size_t argument) {
  const auto* one = std::get_if<ValueRef>(&call.arguments[argument]);
  return one != nullptr ? one->value : kNone;
}

bool reads(const ImportedCall& call, std::int32_t value) {
  bool any = false;
  for (const Argument& argument : call.arguments)
    for_each_reference(argument, [&](const ValueRef& read) { any = any || read.value == value; });
  return any;
}

// The place of the only call that reads a value; nothing: none or several do.
std::optional<std::size_t> only_reader(const std::vector<ImportedCall>& calls, std::int32_t value) {
  std::optional<std::size_t> only;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!reads(calls[i], value)) continue;
    if (only) return std::nullopt;
    only = i;
  }
  return only;
}

const ImportedCall* maker_of(const std::vector<ImportedCall>& calls, std::int32_t value) {
  for (const ImportedCall& call : calls)
    if (call.out.front() == value) return &call;
  return nullptr;
}

// Of `t(x)` x; kNone for another value.
std::int32_t turned(const std::vector<ImportedCall>& calls, std::int32_t value) {
  const ImportedCall* maker = maker_of(calls, value);
  return maker != nullptr && maker->what->name == "t" ? tensor_in(*maker, 0) : kNone;
}

// A product by the weight, or by its turned view: the call, and whether it is turned.
struct Product {
  std::size_t at = 0;
  bool by_turned = false;
};
std::optional<Product> product_by(const std::vector<ImportedCall>& calls, std::int32_t weight) {
  auto reader = only_reader(calls, weight);
  if (!reader) return std::nullopt;
  Product product{*reader, false};
  std::int32_t factor = weight;
  if (calls[*reader].what->name == "t") {
    factor = calls[*reader].out.front();
    reader = only_reader(calls, factor);
    if (!reader) return std::nullopt;
    product = {*reader, true};
  }
  const ImportedCall& call = calls[product.at];
  const std::size_t second = call.what->name == "addmm" ? 2 : 1;
  if ((call.what->name != "mm" && call.what->name != "addmm") || tensor_in(call, second) != factor) return std::nullopt;
  return product;
}

}  // namespace

std::optional<LinearUse> linear_use(const ImportedProgram& program, std::size_t weight) {
  const ImportedPort& port = program.weights[weight];
  if (port.gradient == kNone || port.so_far != kNone || program.type(port.value).rank() != 2) return std::nullopt;
  const auto forward = product_by(program.forward, port.value);
  if (!forward) return std::nullopt;
  LinearUse use;
  const ImportedCall& product = program.forward[forward->at];
  const bool added = product.what->name == "addmm";
  if (added && (product.arguments[3] != Argument(PlainNumber(std::int64_t{1})) ||
                product.arguments[4] != Argument(PlainNumber(std::int64_t{1}))))
    return std::nullopt;
  use.forward = forward->at, use.x = tensor_in(product, added ? 1 : 0), use.y = product.out.front();
  use.inputs = program.type(use.x).dims[1], use.outputs = program.type(use.y).dims[1];
  // The gradient: of W [outputs, inputs] t(g) x, of its turned one t(x) g.
  const ImportedCall* made = maker_of(program.backward, port.gradient);
  if (made == nullptr || made->what->name != "mm") return std::nullopt;
  use.weight_gradient = static_cast<std::size_t>(made - program.backward.data());
  const std::int32_t first = turned(program.backward, tensor_in(*made, 0)), second = tensor_in(*made, 1);
  if (first == kNone) return std::nullopt;
  use.gradient = forward->by_turned ? first : second, use.saved_x = forward->by_turned ? second : first;
  if (program.type(use.gradient) != program.type(use.y) || program.type(use.saved_x) != program.type(use.x))
    return std::nullopt;
  if (!only_reader(program.backward, port.value)) {
    for (const ImportedCall& call : program.backward)
      if (reads(call, port.value)) return std::nullopt;
    return use;  // nobody wants the gradient of x
  }
  const auto back = product_by(program.backward, port.value);
  if (!back || back->by_turned == forward->by_turned || tensor_in(program.backward[back->at], 0) != use.gradient)
    return std::nullopt;
  use.input_gradient = back->at, use.x_gradient = program.backward[back->at].out.front();
  // Nobody may read the gradient of x before that of the weight is there.
  for (std::size_t i = back->at + 1; i <= use.weight_gradient; ++i)
    if (reads(program.backward[i], use.x_gradient)) return std::nullopt;
  return use;
}

}  // namespace tandem
