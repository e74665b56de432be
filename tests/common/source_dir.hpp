// Where the checkout is, for tests that read its files. A path on a command line would make every test file another one
// for the compiler's cache in every clone; so it stands in one generated file (tests/source_dir.cpp.in).
#pragma once

#include <string>

namespace tandem {

extern const char* const kSourceDir;  // a constant: static initialisers may use it

// source_path("scenarios/demo.yaml"): in the checkout.
inline std::string source_path(const std::string& relative) { return std::string(kSourceDir) + "/" + relative; }

}  // namespace tandem
