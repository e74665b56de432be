// Makes a scenario's policy and workload once, so that what they refuse is found when the file is read.
#pragma once

#include "core/scenario/scenario.hpp"
#include "core/yaml/findings.hpp"
#include "core/yaml/known_names.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {

// Adds what the policy and the family refuse. `root` is the scenario's tree with --set applied and the machine inlined,
// before defaults. What is wrong with it so far gives way to defaults, or to stand-ins where there are none: an error
// in one section hides none in another, and what only a stand-in would be refused for is not told.
void check_making(const Node& root, const KnownNames& names, Findings& findings);

}  // namespace tandem
