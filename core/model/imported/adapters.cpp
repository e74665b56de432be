#include "core/model/imported/adapters.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/model/imported/linear_use.hpp"

namespace tandem {
namespace {

using Calls = std::vector<ImportedCall>;

// In all calls from `first` on, `by` instead of `value`.
void replace(Calls& calls, std::size_t first, std::int32_t value, std::int32_t by) {
  for (std::size_t i = first; i < calls.size(); ++i)
    for (Argument& argument : calls[i].arguments)
      for_each_reference(argument, [&](ValueRef& read) {
        if (read.value == value) read.value = by;
      });
}

class Adapting {
 public:
  Adapting(const ImportedProgram& program, const AdapterShape& shape)
      : shape_(shape), out_(std::make_shared<ImportedProgram>(program)) {}

  void adapt(std::size_t weight) {
    const auto use = linear_use(*out_, weight);
    CHECK(use.has_value(), out_->kind, "is no linear layer", out_->weights[weight].name);
    const Element element = out_->type(out_->weights[weight].value).element;
    const std::string layer = layer_of(out_->weights[weight].name);
    ImportedPort a = port_of({element, {shape_.rank, use->inputs}}, layer + kAdapterA);
    ImportedPort b = port_of({element, {use->outputs, shape_.rank}}, layer + kAdapterB);
    add_forward(*use, a.value, b.value);
    add_backward(*use, a, b);
    out_->weights.push_back(std::move(a));
    out_->weights.push_back(std::move(b));
  }
  std::shared_ptr<const ImportedProgram> take() { return std::move(out_); }

 private:
  std::int32_t new_value(TensorType type) {
    out_->names.push_back("adapter" + std::to_string(out_->values.size()));
    out_->values.push_back(std::move(type));
    return static_cast<std::int32_t>(out_->values.size()) - 1;
  }
  ImportedPort port_of(TensorType type, std::string name) {
    ImportedPort port;
    port.value = new_value(std::move(type)), port.name = std::move(name);
    return port;
  }
  std::int32_t call(Calls& to, const char* name, std::vector<Argument> arguments) {
    const Operator* what = find_operator(name);
    CHECK(what != nullptr, "is no operator", name);
    TensorTypes made;
    what->infer(CallView(arguments, out_->values), made);
    const std::int32_t result = new_value(made.at(0));
    to.push_back({what, std::move(arguments), {result}});
    return result;
  }
  static Argument ref(std::int32_t value) { return ValueRef{value}; }
  std::int32_t turned(Calls& to, std::int32_t value) { return call(to, "t", {ref(value)}); }
  std::int32_t product(Calls& to, std::int32_t x, std::int32_t y) { return call(to, "mm", {ref(x), ref(y)}); }
  std::int32_t scaled(Calls& to, std::int32_t x) {
    return call(to, "mul.Scalar", {ref(x), PlainNumber(shape_.factor)});
  }
  std::int32_t sum(Calls& to, std::int32_t x, std::int32_t y) {
    return call(to, "add.Tensor", {ref(x), ref(y), PlainNumber(std::int64_t{1})});
  }
  static void insert(Calls& calls, std::size_t at, Calls more) {
    calls.insert(calls.begin() + static_cast<std::ptrdiff_t>(at), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  }

  void add_forward(const LinearUse& use, std::int32_t a, std::int32_t b) {
    Calls more;
    const std::int32_t inner = product(more, use.x, turned(more, a));
    const std::int32_t added = scaled(more, product(more, inner, turned(more, b)));
    const std::int32_t y = sum(more, use.y, added);
    const std::size_t at = use.forward + 1, behind = at + more.size();
    insert(out_->forward, at, std::move(more));
    replace(out_->forward, behind, use.y, y);
    for (ImportedOutput& output : out_->outputs)
      if (output.value == use.y) output.value = y;
    for (ImportedSaved& saved : out_->saved)
      if (saved.value == use.y) saved.value = y;
  }
  // x times A is made again: it is small, and x is there. Its gradients come right behind the product that made that of
  // the weight, or of x: what they read is there by then, and nobody has read the gradient of x before.
  void add_backward(const LinearUse& use, ImportedPort& a, ImportedPort& b) {
    Calls more;
    const std::int32_t gradient = scaled(more, use.gradient);
    const std::int32_t inner = product(more, use.saved_x, turned(more, a.value));
    b.gradient = product(more, turned(more, gradient), inner);
    const std::int32_t inner_gradient = product(more, gradient, b.value);
    a.gradient = product(more, turned(more, inner_gradient), use.saved_x);
    std::size_t at = use.weight_gradient + 1;
    std::int32_t sum_of_both = kNone;
    if (use.input_gradient) {
      sum_of_both = sum(more, use.x_gradient, product(more, inner_gradient, a.value));
      at = std::max(at, *use.input_gradient + 1);
    }
    const std::size_t behind = at + more.size();
    insert(out_->backward, at, std::move(more));
    if (!use.input_gradient) return;
    replace(out_->backward, behind, use.x_gradient, sum_of_both);
    for (auto* ports : {&out_->inputs, &out_->weights})
      for (ImportedPort& port : *ports)
        if (port.gradient == use.x_gradient) port.gradient = sum_of_both;
  }

  AdapterShape shape_;
  std::shared_ptr<ImportedProgram> out_;
};

}  // namespace

bool adapts(const ImportedProgram& program, std::size_t weight) { return linear_use(program, weight).has_value(); }

std::shared_ptr<const ImportedProgram> adapted(const ImportedProgram& program, const std::vector<bool>& weights,
                                               const AdapterShape& shape) {
  Adapting adapting(program, shape);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i]) adapting.adapt(i);
  return adapting.take();
}

}  // namespace tandem
