#include "runtime/bodies/common/device_kernels.hpp"

#include "core/base/check.hpp"

namespace tandem {
namespace {

DeviceKernels table;

}  // namespace

const DeviceKernels& device_kernels() {
  CHECK(table.update != nullptr, "a program without a device runs a device's body");
  return table;
}

void update_on_device(const UpdateStep& step, const UpdateSpan& span, const UpdateControl* control) {
  CHECK(span.gradient_type == DType::F32 || span.gradient_type == span.parameter_type, name_of(span.gradient_type),
        name_of(span.parameter_type));
  device_kernels().update(step, span, control);
}

void set_device_kernels(const DeviceKernels& kernels) { table = kernels; }

}  // namespace tandem
