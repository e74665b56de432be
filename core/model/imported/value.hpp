// Tensors and arguments of ATen calls, as an imported program writes them. Must not know operators or files.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/base/dtype.hpp"

namespace tandem {

// What a program's tensors are of: more types than what lies between ops has.
enum class Element : std::uint8_t { F32, F16, BF16, F64, I64, I32, U8, Bool };
inline constexpr int kElementCount = 8;
constexpr std::string_view name_of(Element element) {
  constexpr std::string_view kNames[] = {"fp32", "fp16", "bf16", "fp64", "int64", "int32", "uint8", "bool"};
  static_assert(std::size(kNames) == kElementCount);
  return kNames[static_cast<int>(element)];
}
constexpr std::int64_t size_of(Element element) {
  constexpr std::int64_t kSizes[] = {4, 2, 2, 8, 8, 4, 1, 1};
  static_assert(std::size(kSizes) == kElementCount);
  return kSizes[static_cast<int>(element)];
}
constexpr bool is_float(Element element) { return element <= Element::F64; }

// How an operand of that type is kept: flags as bytes.
constexpr DType stored_as(Element element) {
  constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::F64,
                              DType::I64, DType::U8,  DType::U8,   DType::U8};
  static_assert(std::size(kTypes) == kElementCount);
  return kTypes[static_cast<int>(element)];
}

using Sizes = boost::container::small_vector<std::int64_t, 4>;
// Of dimensions, and of numbers of one tensor: beyond what any machine holds, and far from overflow.
inline constexpr std::size_t kMostDimensions = 8;
inline constexpr std::int64_t kMostNumbers = std::int64_t{1} << 44;

struct TensorType {
  Element element = Element::F32;
  Sizes dims;
  std::int64_t numbers() const {
    std::int64_t n = 1;
    for (const std::int64_t d : dims) n *= d;
    return n;
  }
  std::int64_t bytes() const { return numbers() * size_of(element); }
  std::int64_t rank() const { return static_cast<std::int64_t>(dims.size()); }
  bool operator==(const TensorType&) const = default;
};
// "fp32 [4, 16]".
std::string text_of(const TensorType& type);

// What sizes may go by: samples of a batch, and their length.
struct ImportedSizes {
  ImportedSizes(std::int64_t samples, std::int64_t length = 0) : batch(samples), sequence(length) {}
  std::int64_t batch;
  std::int64_t sequence;  // 0: as it was imported
};

// A value of a program by its place; kNone: none.
struct ValueRef {
  std::int32_t value = -1;
  bool is_there() const { return value >= 0; }
  bool operator==(const ValueRef&) const = default;
};
using PlainNumber = std::variant<std::int64_t, double, bool>;
struct Nothing {
  bool operator==(const Nothing&) const = default;
};

// Of a call, by its operator's signature.
using Argument = std::variant<Nothing, ValueRef, std::vector<ValueRef>, PlainNumber, std::vector<std::int64_t>,
                              std::vector<bool>, Element, std::string>;

// `what` of each value that a call's argument reads; one that it may change, of an argument that may be changed.
template <typename AnyArgument, typename What>
void for_each_reference(AnyArgument& argument, const What& what) {
  constexpr bool kConst = std::is_const_v<AnyArgument>;
  using One = std::conditional_t<kConst, const ValueRef, ValueRef>;
  using List = std::conditional_t<kConst, const std::vector<ValueRef>, std::vector<ValueRef>>;
  if (One* one = std::get_if<ValueRef>(&argument); one != nullptr && one->is_there()) what(*one);
  if (List* list = std::get_if<std::vector<ValueRef>>(&argument))
    for (One& item : *list)
      if (item.is_there()) what(item);
}

}  // namespace tandem
