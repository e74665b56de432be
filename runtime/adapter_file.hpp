// Adapters that a run trained, in the folder layout of PEFT (github.com/huggingface/peft): adapter_config.json and
// adapter_model.safetensors. Must not know how they were trained.
#pragma once

#include <string>

#include "runtime/train.hpp"

namespace tandem {

// Writes `<checkpoint.directory>/adapters`, in place of what an earlier run left there. Layers have the names of the
// imported module, or of the family's architecture. Returns what became of it, for people; "" where the scenario has no
// adapters or no directory. The run is over. Throws DeviceError.
std::string save_adapters(Training& training, const Scenario& scenario);

}  // namespace tandem
