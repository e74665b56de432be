#include "core/model/imported/operators.hpp"

#include <array>

#include "core/base/check.hpp"

namespace tandem {
namespace {

using Group = const OperatorTable& (*)();
constexpr std::array<Group, 8> kGroups = {pointwise_operators, view_operators, making_operators, reducing_operators,
                                          product_operators,   norm_operators, index_operators,  image_operators};

template <typename T>
const T* held(const Argument& argument) {
  return std::get_if<T>(&argument);
}

[[noreturn]] void misses(std::size_t i, const char* what) { throw Unsuitable(i, "is not what it takes", what); }

}  // namespace

std::string text_of(const TensorType& type) {
  std::string text = std::string(name_of(type.element)) + " [";
  for (std::size_t i = 0; i < type.dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(type.dims[i]);
  return text + "]";
}

const Argument& CallView::at(std::size_t i) const {
  if (i >= count()) misses(i, "as many arguments as it has");
  return (*arguments_)[i];
}

const TensorType& CallView::tensor(std::size_t i) const {
  const auto* reference = held<ValueRef>(at(i));
  if (reference == nullptr || !reference->is_there()) misses(i, "a tensor");
  return values_->at(static_cast<std::size_t>(reference->value));
}

const std::vector<ValueRef>& CallView::references(std::size_t i) const {
  const auto* list = held<std::vector<ValueRef>>(at(i));
  if (list == nullptr) misses(i, "a list of tensors");
  return *list;
}

std::vector<const TensorType*> CallView::tensors(std::size_t i) const {
  std::vector<const TensorType*> types;
  for (const ValueRef& reference : references(i))
    if (reference.is_there()) types.push_back(&values_->at(static_cast<std::size_t>(reference.value)));
  return types;
}

const PlainNumber& CallView::scalar(std::size_t i) const {
  const auto* number = held<PlainNumber>(at(i));
  if (number == nullptr) misses(i, "a number");
  return *number;
}

std::int64_t CallView::integer(std::size_t i) const {
  const auto* integer = std::get_if<std::int64_t>(&scalar(i));
  if (integer == nullptr) misses(i, "a whole number");
  return *integer;
}

double CallView::number(std::size_t i) const {
  return std::visit([](auto n) { return static_cast<double>(n); }, scalar(i));
}

bool CallView::flag(std::size_t i) const {
  const auto* flag = std::get_if<bool>(&scalar(i));
  if (flag == nullptr) misses(i, "true or false");
  return *flag;
}

const std::vector<std::int64_t>& CallView::integers(std::size_t i) const {
  const auto* list = held<std::vector<std::int64_t>>(at(i));
  if (list == nullptr) misses(i, "a list of whole numbers");
  return *list;
}

const std::vector<bool>& CallView::flags(std::size_t i) const {
  const auto* list = held<std::vector<bool>>(at(i));
  if (list == nullptr) misses(i, "a list of flags");
  return *list;
}

Element CallView::element(std::size_t i, Element otherwise) const {
  if (!has(i)) return otherwise;
  const auto* element = held<Element>(at(i));
  if (element == nullptr) misses(i, "a type");
  return *element;
}

namespace {

std::size_t within(std::size_t i, std::int64_t d, std::int64_t rank) {
  const std::int64_t most = std::max<std::int64_t>(rank, 1);
  if (d < -most || d >= most)
    throw Unsuitable(i, "is no dimension of its tensor", std::to_string(-most) + " to " + std::to_string(most - 1));
  return static_cast<std::size_t>(d < 0 ? d + most : d);
}

}  // namespace

std::size_t CallView::dimension(std::size_t i, std::int64_t rank) const { return within(i, integer(i), rank); }

std::vector<bool> CallView::dimensions(std::size_t i, std::int64_t rank) const {
  const bool all = !has(i) || integers(i).empty();
  std::vector<bool> chosen(static_cast<std::size_t>(std::max<std::int64_t>(rank, 1)), all);
  if (!all)
    for (const std::int64_t d : integers(i)) chosen[within(i, d, rank)] = true;
  return chosen;
}

std::vector<const TensorType*> CallView::read() const {
  std::vector<const TensorType*> types;
  for (std::size_t i = 0; i < count(); ++i) {
    if (is_tensor(i)) types.push_back(&tensor(i));
    if (held<std::vector<ValueRef>>(at(i)) != nullptr)
      for (const TensorType* type : tensors(i)) types.push_back(type);
  }
  return types;
}

const Operator* find_operator(std::string_view name) {
  for (const Group group : kGroups)
    for (const Operator& entry : group())
      if (entry.name == name) return &entry;
  return nullptr;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const Group group : kGroups)
    for (const Operator& entry : group()) names.emplace_back(entry.name);
  return names;
}

}  // namespace tandem
