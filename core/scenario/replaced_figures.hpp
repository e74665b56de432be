// What a measured machine no longer knows once some of its figures are replaced: how far its predictions may be off.
// Must not know where the figures come from.
#pragma once

#include <string>
#include <vector>

#include "core/yaml/yaml_tree.hpp"

namespace tandem {

// The keys of a machine that a tree says something of, joined by dots: of its maps, each leaf.
std::vector<std::string> paths_of(const Node& changes, const std::string& prefix = "");

// Takes those causes out of the machine's `uncertainty` that the figures at these paths are of.
void forget_uncertainty(Node& machine, const std::vector<std::string>& replaced);

}  // namespace tandem
