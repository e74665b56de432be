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
// A command that is a program beside this one: tandem-<program>, told by a first word which of its commands it is.
struct PartCommand {
  const char* name;
  const char* program = name;
  const char* word = "";  // none
};
std::vector<std::string> arguments_of(const PartCommand& part, std::vector<std::string> arguments);
Declarations declarations(std::span<const Builtin> builtins, std::span<const PartCommand> parts);

}  // namespace tandem
