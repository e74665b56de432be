// `tandem import`: finds a Python that has PyTorch, and becomes the importer that comes with Tandem (python/).
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "apps/commands.hpp"
#include "cli/child_process.hpp"
#include "cli/siblings.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/dirs.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool has_torch(const std::string& python) {
  if (::access(python.c_str(), X_OK) != 0) return false;
  const pid_t child =
      start_child(python, {"-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"},
                  {-1, "/dev/null"});
  const int status = wait_for_child(child).status;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string python_on_the_path() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    for (const char* name : {"python3", "python"})
      if (const std::string python = (fs::path(folder) / name).string(); has_torch(python)) return python;
  throw ConfigError("import: no python on the PATH has torch; allowed: --python PATH, of one that has");
}

std::string importer() {
  for (const std::string& folder : python_dirs()) return folder;
  throw ConfigError(
      "import: the folder python/ that comes with Tandem is missing; allowed: a whole checkout or installation");
}

}  // namespace

int import_module(const ImportFlags& flags) {
  if (!flags.python.empty() && !has_torch(flags.python))
    throw ConfigError("import: --python: " + flags.python +
                      " has no torch, or does not run; allowed: a python that has torch");
  const std::string python = flags.python.empty() ? python_on_the_path() : flags.python;
  std::vector<std::string> words = {
      python, "-c",
      "import sys; sys.path.insert(0, sys.argv.pop(1)); from tandem.importer.command import main; sys.exit(main())",
      importer()};
  words.insert(words.end(), flags.arguments.begin(), flags.arguments.end());
  become_program(std::move(words));
}

}  // namespace tandem
