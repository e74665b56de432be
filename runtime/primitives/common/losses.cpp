#include "runtime/primitives/common/losses.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

namespace tandem {
namespace {

// On the processor of what the call saves: every loss saves or reads something.
at::TensorOptions options(const Arguments& a) {
  for (const auto* list : {&a.saved, &a.in})
    for (const at::Tensor& tensor : *list)
      if (tensor.defined()) return tensor.options();
  return {};
}

// Kept values are places, or in fp32, or in the precision of what the call reads.
at::ScalarType type_of(DType type, const at::TensorOptions& own) {
  if (type == DType::I64) return at::kLong;
  return type == DType::F32 ? at::kFloat : c10::typeMetaToScalarType(own.dtype());
}

}  // namespace

at::Tensor loss_gradient(const Arguments& a) {
  at::Tensor one = at::full({}, 1.0f / static_cast<float>(a.micro_batches), options(a).dtype(at::kFloat));
  if (a.loss_scale.defined()) one.mul_(a.loss_scale);
  return one;
}

at::Tensor saved_or_apart(const Arguments& a, std::size_t place) {
  if (a.saved[place].defined()) return a.saved[place];
  const Shape& shape = a.call.shapes.saved[place].shape;
  return at::empty({shape.dims.data(), shape.dims.size()}, options(a).dtype(type_of(shape.type, options(a))));
}

}  // namespace tandem
