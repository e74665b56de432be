// The ATen operators that an imported program may call: what arguments each takes, the shapes that follow, and the
// kernels that it costs. Nothing else is ever called. Must not know LibTorch, programs or files.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/model/imported/value.hpp"

namespace tandem {

// An argument that does not go with the others. `argument`: its place.
struct Unsuitable : std::runtime_error {
  Unsuitable(std::size_t at, const std::string& problem, std::string what_is_allowed)
      : std::runtime_error(problem), argument(at), allowed(std::move(what_is_allowed)) {}
  std::size_t argument;
  std::string allowed;
};

// A call's arguments with the types of the tensors among them. Accessors throw Unsuitable for what is not there.
class CallView {
 public:
  CallView(const std::vector<Argument>& arguments, const std::vector<TensorType>& values)
      : arguments_(&arguments), values_(&values) {}
  std::size_t count() const { return arguments_->size(); }
  bool has(std::size_t i) const { return i < count() && !std::holds_alternative<Nothing>((*arguments_)[i]); }
  bool is_tensor(std::size_t i) const { return i < count() && std::holds_alternative<ValueRef>((*arguments_)[i]); }
  const TensorType& tensor(std::size_t i) const;
  // Those that are there, of a list.
  std::vector<const TensorType*> tensors(std::size_t i) const;
  const std::vector<ValueRef>& references(std::size_t i) const;
  std::int64_t integer(std::size_t i) const;
  double number(std::size_t i) const;
  const PlainNumber& scalar(std::size_t i) const;
  bool flag(std::size_t i) const;
  const std::vector<std::int64_t>& integers(std::size_t i) const;
  const std::vector<bool>& flags(std::size_t i) const;
  Element element(std::size_t i, Element otherwise) const;
  // A dimension of a tensor of that rank, counted from its end where it is negative.
  std::size_t dimension(std::size_t i, std::int64_t rank) const;
  std::vector<bool> dimensions(std::size_t i, std::int64_t rank) const;  // none named: all
  // All tensors that are read, in order.
  std::vector<const TensorType*> read() const;

 private:
  const Argument& at(std::size_t i) const;
  const std::vector<Argument>* arguments_;
  const std::vector<TensorType>* values_;
};

using TensorTypes = std::vector<TensorType>;

struct Operator {
  enum class Kind : std::uint8_t {
    Compute,
    View,    // its results lie in its first argument
    Random,  // its result follows from the step's seed
  };
  std::string_view name;       // ATen's, with the overload: "add.Tensor"
  std::string_view signature;  // a letter an argument: see kSignatureLetters
  // The results' types, in order. Throws Unsuitable.
  void (*infer)(const CallView& call, TensorTypes& out);
  // Appends what it costs; null: its bytes, once.
  void (*kernels)(const CallView& call, const TensorTypes& out, std::vector<Kernel>& to) = nullptr;
  // What LibTorch takes beside operands and results; null: little.
  std::int64_t (*scratch)(const CallView& call, const TensorTypes& out, std::int64_t threads, bool gpu) = nullptr;
  Kind kind = Kind::Compute;
};

// T tensor, t tensor or nothing, A tensor or number, L list of tensors, O list of tensors or nothing each, i integer, o
// integer or nothing, I integers, J integers or nothing, n number, x number or nothing, b flag, B flags, d element type
// or nothing, s word, m memory format or nothing.
inline constexpr std::string_view kSignatureLetters = "TtALOioIJnxbBdsm";

// Null: no program may call it.
const Operator* find_operator(std::string_view name);
std::vector<std::string> operator_names();

// Each group of operators: a file.
using OperatorTable = std::vector<Operator>;
const OperatorTable& pointwise_operators();
const OperatorTable& view_operators();
const OperatorTable& making_operators();
const OperatorTable& reducing_operators();
const OperatorTable& product_operators();
const OperatorTable& norm_operators();
const OperatorTable& index_operators();
const OperatorTable& image_operators();

}  // namespace tandem
