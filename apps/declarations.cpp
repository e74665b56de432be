#include "apps/declarations.hpp"

#include <algorithm>
#include <stdexcept>

#include "cli/cli.hpp"
#include "cli/siblings.hpp"
#include "core/base/errors.hpp"
#include "core/yaml/yaml_tree.hpp"
#include "report/temporary_file.hpp"

namespace tandem {
namespace {

DeclaredCommand of_builtin(const Builtin& builtin) {
  try {
    builtin.run({kDeclare});
  } catch (const DeclaredCommand& command) {
    return command;
  }
  throw std::logic_error(std::string(builtin.name) + " declares nothing");
}

bool is_built(const std::string& part) {
  try {
    sibling(part);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

DeclaredCommand of_part(const PartCommand& part) {
  const TemporaryFolder folder;
  const std::string file = folder.file("declared.json");
  const ChildResult child = run_child(part.program, arguments_of(part, {kDeclare}), /*keep_errors=*/true, file);
  if (child.exit_code != kDone)
    throw DeviceError("tandem " + std::string(part.name) + " does not say its flags: " + child.reason());
  return read_declared(read_text_file(file));
}

}  // namespace

std::vector<std::string> arguments_of(const PartCommand& part, std::vector<std::string> arguments) {
  if (*part.word != '\0') arguments.insert(arguments.begin(), part.word);
  return arguments;
}

Declarations declarations(std::span<const Builtin> builtins, std::span<const PartCommand> parts) {
  Declarations all;
  for (const Builtin& builtin : builtins) all.commands.push_back(of_builtin(builtin));
  for (const PartCommand& part : parts) {
    if (is_built(part.program))
      all.commands.push_back(of_part(part));
    else
      all.not_built.emplace_back(part.name);
  }
  std::sort(all.commands.begin(), all.commands.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

}  // namespace tandem
