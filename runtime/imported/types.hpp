// Element types of imported programs as LibTorch's, and tensors that lie in an order of their own.
#pragma once

#include <ATen/ops/from_blob.h>

#include "core/model/imported/value.hpp"
#include "runtime/executors/workspace.hpp"

namespace tandem {

constexpr at::ScalarType torch_type(Element element) {
  constexpr at::ScalarType kTypes[] = {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble,
                                       at::kLong,  at::kInt,  at::kByte,     at::kBool};
  static_assert(std::size(kTypes) == kElementCount);
  return kTypes[static_cast<int>(element)];
}

inline at::Device torch_device(Processor processor) {
  return processor == Processor::Host ? at::Device(at::kCPU) : at::Device(at::kCUDA, 0);
}

// `order`: dimensions from the outermost in memory; empty: as they are.
Sizes strides_of(const TensorType& type, const Sizes& order);
at::Tensor tensor_at(Processor processor, void* begin, const TensorType& type, at::IntArrayRef strides);
inline at::Tensor tensor_at(Processor processor, void* begin, const TensorType& type, const Sizes& order) {
  const Sizes strides = strides_of(type, order);
  return tensor_at(processor, begin, type, at::IntArrayRef(strides.data(), strides.size()));
}

}  // namespace tandem
