// What a measured machine no longer knows once some of its figures are replaced: how far its predictions may be off,
// and what single ops take. Must not know where the figures come from.
#pragma once

#include <string>
#include <vector>

#include "core/yaml/yaml_tree.hpp"

namespace tandem {

// The keys of a machine that a tree says something of, joined by dots: of its maps, each leaf.
std::vector<std::string> paths_of(const Node& changes, const std::string& prefix = "");

// Takes those causes out of the machine's `uncertainty` that the figures at these paths are of, and those rows out of
// its `ops` that were measured on the processor that they are of.
void forget_measurements(Node& machine, const std::vector<std::string>& replaced);

}  // namespace tandem
