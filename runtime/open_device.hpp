// Which device a training program can open: the one thing in which tandem-train and tandem-train-cuda differ.
#pragma once

#include <memory>
#include <string>

#include "runtime/executors/device.hpp"

namespace tandem {

// The devices that this program has, for its --device flag: "cpu", "cuda".
bool has_device(const std::string& name);
// Null for "cpu": worker threads stand in. Throws DeviceError where the machine has no such device.
std::shared_ptr<Device> open_device(const std::string& name);

}  // namespace tandem
