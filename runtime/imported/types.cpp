#include "runtime/imported/types.hpp"

namespace tandem {

Sizes strides_of(const TensorType& type, const Sizes& order) {
  Sizes strides(type.dims.size(), 1);
  std::int64_t stride = 1;
  for (std::size_t i = strides.size(); i-- > 0;) {
    const std::size_t d = order.empty() ? i : static_cast<std::size_t>(order[i]);
    strides[d] = stride;
    stride *= std::max<std::int64_t>(type.dims[d], 1);
  }
  return strides;
}

at::Tensor tensor_at(Processor processor, void* begin, const TensorType& type, at::IntArrayRef strides) {
  const at::Device device = torch_device(processor);
  return at::for_blob(begin, at::IntArrayRef(type.dims.data(), type.dims.size()))
      .strides(strides)
      .options(at::TensorOptions(torch_type(type.element)).device(device))
      .target_device(device)
      .make_tensor();
}

}  // namespace tandem
