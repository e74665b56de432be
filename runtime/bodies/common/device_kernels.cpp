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

void set_device_kernels(const DeviceKernels& kernels) { table = kernels; }

}  // namespace tandem
