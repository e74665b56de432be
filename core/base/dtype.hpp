// Types of a tensor's elements, and their sizes in bytes. Must not know tensors.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

namespace tandem {

enum class DType : std::uint8_t { F32, F16, BF16, F64, I64, I16, U8 };
inline constexpr int kDTypeCount = 7;
constexpr std::int64_t size_of(DType type) {
  constexpr std::int64_t kSizes[] = {4, 2, 2, 8, 8, 2, 1};
  static_assert(std::size(kSizes) == kDTypeCount);
  return kSizes[static_cast<int>(type)];
}
constexpr std::string_view name_of(DType type) {
  constexpr std::string_view kNames[] = {"fp32", "fp16", "bf16", "fp64", "int64", "int16", "uint8"};
  static_assert(std::size(kNames) == kDTypeCount);
  return kNames[static_cast<int>(type)];
}

}  // namespace tandem
