// What holds a step, in words. Must not know runs.
#pragma once

#include <string>

#include "analysis/holder.hpp"

namespace tandem {

// "the GPU waits 61.0% of the step for the CPU's adamw". `gpu`: what the device is; `optimizer`: whose update it is
// that the CPU does.
std::string held_words(const Holder& holder, bool gpu, const std::string& optimizer);

}  // namespace tandem
