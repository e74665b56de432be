// Operators that compute each number of their result from those at its place.
#include "core/model/imported/shapes.hpp"

namespace tandem {
namespace {

int category(Element element) { return element == Element::Bool ? 0 : is_float(element) ? 2 : 1; }

Element wider(Element a, Element b) {
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (a == b) return a;
  // Two halves of one kind have no common half.
  if (size_of(a) == size_of(b)) return is_float(a) ? Element::F32 : Element::I64;
  if (is_float(a)) return size_of(a) > size_of(b) ? a : b;
  return size_of(a) > size_of(b) ? a : b;
}

Element element_of(const PlainNumber& number) {
  if (std::holds_alternative<bool>(number)) return Element::Bool;
  return std::holds_alternative<double>(number) ? Element::F32 : Element::I64;
}

}  // namespace

Element promoted(const CallView& call, std::initializer_list<std::size_t> arguments) {
  // With dimensions, without, and numbers.
  Element by_weight[3] = {Element::Bool, Element::Bool, Element::Bool};
  bool there[3] = {};
  for (const std::size_t i : arguments) {
    if (!call.has(i)) continue;
    const bool is_tensor = call.is_tensor(i);
    const int weight = !is_tensor ? 2 : call.tensor(i).dims.empty() ? 1 : 0;
    const Element element = is_tensor ? call.tensor(i).element : element_of(call.scalar(i));
    by_weight[weight] = there[weight] ? wider(by_weight[weight], element) : element;
    there[weight] = true;
  }
  Element result = Element::Bool;
  bool any = false;
  for (int weight = 0; weight < 3; ++weight) {
    if (!there[weight]) continue;
    const Element lighter = by_weight[weight];
    if (!any) result = lighter;
    // A lighter one of a higher category counts, as the default of that category where it is a number.
    if (any && category(lighter) > category(result)) result = lighter;
    any = true;
  }
  return result;
}

Sizes broadcast_of(const CallView& call, std::initializer_list<std::size_t> arguments) {
  Sizes dims;
  for (const std::size_t i : arguments)
    if (call.is_tensor(i)) dims = broadcast(dims, call.tensor(i).dims, i);
  return dims;
}

namespace {

Element floating(Element element) { return is_float(element) ? element : Element::F32; }

void one(const CallView& c, TensorTypes& out) { out.push_back(c.tensor(0)); }
void one_floating(const CallView& c, TensorTypes& out) {
  out.push_back(c.tensor(0));
  out[0].element = floating(out[0].element);
}
void one_and_number(const CallView& c, TensorTypes& out) { out.push_back(made(promoted(c, {0, 1}), c.tensor(0).dims)); }
void one_divided(const CallView& c, TensorTypes& out) {
  one_and_number(c, out);
  out[0].element = floating(out[0].element);
}
void two(const CallView& c, TensorTypes& out) { out.push_back(made(promoted(c, {0, 1}), broadcast_of(c, {0, 1}))); }
void two_divided(const CallView& c, TensorTypes& out) {
  two(c, out);
  out[0].element = floating(out[0].element);
}
void compared(const CallView& c, TensorTypes& out) { out.push_back(made(Element::Bool, broadcast_of(c, {0, 1}))); }
void negated(const CallView& c, TensorTypes& out) { out.push_back({Element::Bool, c.tensor(0).dims}); }
void chosen(const CallView& c, TensorTypes& out) {
  require(c.tensor(0).element == Element::Bool, 0, "is no condition", "a tensor of bool");
  out.push_back(made(promoted(c, {1, 2}), broadcast_of(c, {0, 1, 2})));
}
void filled(const CallView& c, TensorTypes& out) {
  require(c.tensor(1).element == Element::Bool, 1, "is no mask", "a tensor of bool");
  out.push_back(made(c.tensor(0).element, broadcast_of(c, {0, 1})));
}
void backward_of_two(const CallView& c, TensorTypes& out) {
  out.push_back(made(promoted(c, {0, 1}), broadcast_of(c, {0, 1})));
}
// Of a number for each, or of all: 0 none, 1 mean, 2 sum.
void squared_error(const CallView& c, TensorTypes& out) {
  const Sizes dims = broadcast_of(c, {0, 1});
  out.push_back(made(promoted(c, {0, 1}), c.integer(2) == 0 ? dims : Sizes{}));
}
void squared_error_backward(const CallView& c, TensorTypes& out) {
  out.push_back(made(c.tensor(1).element, broadcast_of(c, {0, 1, 2})));
}

}  // namespace

const OperatorTable& pointwise_operators() {
  static const OperatorTable kTable = {
      {"add.Tensor", "TAn", two},
      {"sub.Tensor", "TAn", two},
      {"mul.Tensor", "TA", two},
      {"div.Tensor", "TA", two_divided},
      {"add.Scalar", "Tnn", one_and_number},
      {"sub.Scalar", "Tnn", one_and_number},
      {"rsub.Scalar", "Tnn", one_and_number},
      {"mul.Scalar", "Tn", one_and_number},
      {"div.Scalar", "Tn", one_divided},
      {"pow.Tensor_Scalar", "Tn", one_and_number},
      {"maximum", "TT", two},
      {"minimum", "TT", two},
      {"clamp", "Txx", one},
      {"neg", "T", one},
      {"abs", "T", one},
      {"sign", "T", one},
      {"relu", "T", one},
      {"exp", "T", one_floating},
      {"log", "T", one_floating},
      {"log1p", "T", one_floating},
      {"expm1", "T", one_floating},
      {"sqrt", "T", one_floating},
      {"rsqrt", "T", one_floating},
      {"reciprocal", "T", one_floating},
      {"cos", "T", one_floating},
      {"sin", "T", one_floating},
      {"erf", "T", one_floating},
      {"tanh", "T", one_floating},
      {"sigmoid", "T", one_floating},
      {"silu", "T", one_floating},
      {"gelu", "Ts", one_floating, nullptr, copies_of_operands},
      {"softplus", "Tnn", one_floating},
      {"leaky_relu", "Tn", one_floating},
      {"gelu_backward", "TTs", backward_of_two, nullptr, copies_of_operands},
      {"silu_backward", "TT", backward_of_two},
      {"sigmoid_backward", "TT", backward_of_two},
      {"tanh_backward", "TT", backward_of_two},
      {"threshold_backward", "TTn", backward_of_two},
      {"softplus_backward", "TTnn", backward_of_two},
      {"leaky_relu_backward", "TTnb", backward_of_two},
      {"bitwise_and.Tensor", "TT", two},
      {"bitwise_or.Tensor", "TT", two},
      {"bitwise_not", "T", one},
      {"logical_not", "T", negated},
      {"logical_and", "TT", compared},
      {"logical_or", "TT", compared},
      {"eq.Tensor", "TA", compared},
      {"ne.Tensor", "TA", compared},
      {"lt.Tensor", "TA", compared},
      {"le.Tensor", "TA", compared},
      {"gt.Tensor", "TA", compared},
      {"ge.Tensor", "TA", compared},
      {"eq.Scalar", "Tn", compared},
      {"ne.Scalar", "Tn", compared},
      {"lt.Scalar", "Tn", compared},
      {"le.Scalar", "Tn", compared},
      {"gt.Scalar", "Tn", compared},
      {"ge.Scalar", "Tn", compared},
      {"where.self", "TAA", chosen},
      {"masked_fill.Scalar", "TTn", filled},
      {"masked_fill.Tensor", "TTT", filled},
      {"mse_loss", "TTi", squared_error, nullptr, copies_of_operands},
      {"mse_loss_backward", "TTTi", squared_error_backward, nullptr, copies_of_operands},
  };
  return kTable;
}

}  // namespace tandem
