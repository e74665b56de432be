// Where a program is to write, checked before it works: that it can, and that no file is written twice or is one that
// it reads. Must not know what is written.
#pragma once

#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem {

struct NamedPath {
  std::string name;  // "--json", "the scenario"
  std::string path;  // "": none
};

// Throws ConfigError for an output that cannot be written, that is another output or an input, by whatever spelling or
// link. Devices and pipes may be named more than once; "-" is standard output.
void check_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs);

// The files that a run of it reads: scenario, profile, data, checkpoint.
std::vector<NamedPath> inputs_of(const Scenario& scenario);

}  // namespace tandem
