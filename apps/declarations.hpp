// What all commands of this build declare: asked of each, be it carried out by this program or by another.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/declared.hpp"

namespace tandem {

// A command of this program.
struct Builtin {
  const char* name;
  int (*run)(const std::vector<std::string>&);
};

struct Declarations {
  std::vector<DeclaredCommand> commands;  // by name
  std::vector<std::string> not_built;     // commands whose programs are not here
};
// `parts`: the names of commands that are programs beside this one.
Declarations declarations(std::span<const Builtin> builtins, std::span<const char* const> parts);

}  // namespace tandem
