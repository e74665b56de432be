// For fish 3: a line for each command, flag and argument, with the descriptions that the commands declare.
#include "apps/completion.hpp"
#include "core/yaml/position.hpp"

namespace tandem {
namespace {

constexpr const char* kFunctions = R"fish(
# Whether the command is that one; without a name, whether there is none yet.
function __tandem_command
    set -l words (commandline -opc)
    if test (count $argv) = 0
        test (count $words) = 1
    else
        test "$words[2]" = $argv[1]
    end
end
function __tandem_names
    set -l words (commandline -opc)
    eval $words[1] list $argv[1] --names 2>/dev/null
end
# Several that commas join: what is there, and each.
function __tandem_many
    set -l before (string match -r '^(?:--[^=]*=)?(.*,)' -- (commandline -ct))[2]
    for word in $argv
        echo "$before$word"
    end
end
function __tandem_settings
    set -l word (string replace -r '^--[^=]*=' '' -- (commandline -ct))
    if string match -q '*=*' -- $word
        set -l key (string split -m 1 = -- $word)[1]
        for value in (__tandem_key $key)
            echo $key=$value
        end
    else
        printf '%s=\n' $__tandem_keys
    end
end
)fish";

// In single quotes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

// What prints the words or names that it may be, or "".
std::string printing(const Completed& value) {
  if (value.kind == Completed::Kind::Words) return "printf '%s\\n' " + join(value.words, " ");
  return value.kind == Completed::Kind::Names ? "__tandem_names " + value.list : "";
}

// The flags of `complete` for a value.
std::string action_of(const Completed& value) {
  using Kind = Completed::Kind;
  switch (value.kind) {
    case Kind::File:
      return " -r -F";
    case Kind::Folder:
      return " -x -a '(__fish_complete_directories (commandline -ct))'";
    case Kind::Setting:
      return " -x -a '(__tandem_settings)'";
    case Kind::Nothing:
      return " -x";
    case Kind::Words:
      if (!value.many) return " -x -a " + quoted(join(value.words, " "));
      return " -x -a " + quoted("(__tandem_many " + join(value.words, " ") + ")");
    case Kind::Names:
      break;
  }
  const std::string names = value.many ? "(__tandem_many (" + printing(value) + "))" : "(" + printing(value) + ")";
  return std::string(value.or_file ? " -r -F" : " -x") + " -a " + quoted(names);
}

std::string flag_text(const std::string& command, const DeclaredFlag& flag) {
  std::string text = "complete -c tandem -n '__tandem_command " + command + "'";
  for (const std::string& name : names_of(flag))
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  return text + (flag.value.empty() ? "" : action_of(completed_by(flag))) + " -d " + quoted(flag.what) + "\n";
}

// An argument is completed where no flag wants a value.
std::string argument_text(const std::string& command, const DeclaredFlag& argument) {
  const Completed value = completed_by(argument);
  const std::string condition = "complete -c tandem -n '__tandem_command " + command + "'";
  if (value.kind == Completed::Kind::File) return condition + " -F\n";
  return value.kind == Completed::Kind::Words ? condition + " -a " + quoted(join(value.words, " ")) + "\n" : "";
}

}  // namespace

std::string fish_completion(const Declarations& declarations) {
  std::string keys, key_cases;
  for (const CompletedKey& key : completed_keys()) {
    keys += " " + key.key;
    if (const std::string print = printing(key.value); !print.empty())
      key_cases += "        case " + key.key + "\n            " + print + "\n";
  }
  std::string text = "# Written by `tandem completion fish` from what the commands declare.\nset -g __tandem_keys" +
                     keys + "\n" + kFunctions + "function __tandem_key\n    switch $argv[1]\n" + key_cases +
                     "    end\nend\ncomplete -c tandem -f\n";
  for (const DeclaredCommand& command : declarations.commands) {
    text += "complete -c tandem -n __tandem_command -a " + command.name + " -d " + quoted(command.what) + "\n";
    for (const DeclaredFlag& flag : command.flags) text += flag_text(command.name, flag);
    for (const DeclaredFlag& argument : command.arguments) text += argument_text(command.name, argument);
  }
  return text;
}

}  // namespace tandem
