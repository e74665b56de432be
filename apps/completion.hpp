// Scripts with which shells complete tandem's commands, flags, files and names. One shell a file; what a value may be
// is told here for all of them.
#pragma once

#include <string>
#include <vector>

#include "apps/declarations.hpp"

namespace tandem {

// What stands behind a flag, or as an argument.
struct Completed {
  enum class Kind {
    Nothing,  // a number, or a text of the user's
    File,
    Folder,
    Setting,  // a key of a scenario, "=", and what the key takes
    Words,    // of `words`
    Names     // what `tandem list LIST` names
  } kind = Kind::Nothing;
  std::vector<std::string> words;
  std::string list;
  bool many = false;     // several, joined by commas
  bool or_file = false;  // Names: or a file
};
// By how a command declares it: "FILE", "cpu|cuda", "POLICY,POLICY,...".
Completed completed_by(const DeclaredFlag& flag);

// A key of scenarios, with dots, and its value.
struct CompletedKey {
  std::string key;
  Completed value;
};
std::vector<CompletedKey> completed_keys();  // by the scenarios' schema

// The names of a flag, one by one.
std::vector<std::string> names_of(const DeclaredFlag& flag);

// `shell`: bash, zsh or fish.
std::string completion_script(const std::string& shell, const Declarations& declarations);
std::string bash_completion(const Declarations& declarations);
std::string zsh_completion(const Declarations& declarations);
std::string fish_completion(const Declarations& declarations);

}  // namespace tandem
