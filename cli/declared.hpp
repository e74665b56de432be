// What a command declares of itself, as its parser has it: of this a manual page and the completions of shells are
// made. Must not know any command.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}

namespace tandem {

// The argument, alone, that asks a program for it: parse() prints it as JSON, and the program ends.
inline constexpr const char* kDeclare = "--declare";

struct DeclaredFlag {
  std::string names;     // "-h, --help"; of a positional argument its one name
  std::string value;     // what it takes: "FILE", "cpu|cuda"; "": nothing
  std::string what;      // with the range of a number
  std::string standard;  // what stands where it is not given; "": nothing
  bool required = false, repeats = false;
};

struct DeclaredCommand {
  std::string name, what;
  std::vector<DeclaredFlag> arguments, flags;
};

// Of all that `app` does not hide.
DeclaredCommand declared_by(const CLI::App& app);

std::string declared_text(const DeclaredCommand& command);
DeclaredCommand read_declared(const std::string& text);

}  // namespace tandem
