// Which device a training program can open: the one thing in which tandem-train and tandem-train-cuda differ.
#pragma once

#include <memory>
#include <string>

#include "runtime/executors/device.hpp"

namespace tandem {

// The devices that this program has, for its --device flag: "cpu", "cuda".
bool has_device(const std::string& name);
// Null for "cpu": worker threads stand in. Of several ranks each has its own. Throws DeviceError where the machine has
// no such device, or too few. Once in a process that is one of several ranks.
std::shared_ptr<Device> open_device(const std::string& name, Rank rank = 0, Rank ranks = 1);

}  // namespace tandem
