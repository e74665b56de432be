// --set arguments: "path.to.key=value", put into a tree before it is checked.
#pragma once

#include <string>
#include <vector>

#include "core/yaml/yaml_tree.hpp"

namespace tandem {

struct Override {
  std::string source;             // "--set policy.name": its position in messages
  std::vector<std::string> keys;  // "policy", "name"
  Node value;
};

// The argument at `index`. Throws Finding for one without '=', without a value, or with a path that is no keys joined
// by dots.
Override read_override(const std::string& argument, int index = 0);
// Puts the value in place, making maps on the way. Throws Finding where the path leads into something else.
void apply(const Override& change, Node& root);

}  // namespace tandem
