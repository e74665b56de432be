// tandem-train as a function, and how its failures name files.
#pragma once

#include <string>

#include "tests/file_faults/common/fault_run.hpp"

// runtime/main.cpp's main, by the name that tests/CMakeLists.txt gives it.
int tandem_train_main(int argc, char** argv);

namespace tandem::testing {

// A temporary file is told by the name that it was to get.
inline std::string named_file(const TracedCall& call) { return call.path.substr(0, call.path.find(".partial-")); }

}  // namespace tandem::testing
