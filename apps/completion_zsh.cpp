// For zsh: what _arguments takes, with the descriptions that the commands declare.
#include "apps/completion.hpp"
#include "core/yaml/position.hpp"

namespace tandem {
namespace {

constexpr const char* kHead = R"zsh(#compdef tandem
# Written by `tandem completion zsh` from what the commands declare.

_tandem_names() { compadd - "${(@f)$(_call_program names ${(q)_tandem_program} list $1 --names 2>/dev/null)}"; }
_tandem_names_or_files() { _alternative "names:name: _tandem_names $1" 'files:file:_files'; }
# The last of several that commas join.
_tandem_many() { compset -P '*,'; "$@"; }
_tandem_settings() {
  if [[ $PREFIX != *=* ]]; then
    compadd -S '=' -q -a _tandem_keys
    return
  fi
  local key=${PREFIX%%=*}
  compset -P 1 '*='
  _tandem_key $key
}
)zsh";

constexpr const char* kTail = R"zsh(
_tandem() {
  local curcontext=$curcontext state line _tandem_program=${(Q)words[1]}
  _arguments -C '1:command:->command' '*::argument:->arguments' && return
  if [[ $state == command ]]; then
    _describe command _tandem_commands
  else
    _tandem_command $words[1]
  fi
}
if [[ $funcstack[1] == _tandem ]]; then _tandem "$@"; else compdef _tandem tandem; fi
)zsh";

// In single quotes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// Within [] or before a colon of what _arguments takes.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// What completes it: a command.
std::string action_of(const Completed& value) {
  using Kind = Completed::Kind;
  const std::string many = value.many ? "_tandem_many " : "";
  switch (value.kind) {
    case Kind::File:
      return "_files";
    case Kind::Folder:
      return "_files -/";
    case Kind::Setting:
      return "_tandem_settings";
    case Kind::Words:
      return many + "compadd - " + join(value.words, " ");
    case Kind::Names:
      return many + (value.or_file ? "_tandem_names_or_files " : "_tandem_names ") + value.list;
    case Kind::Nothing:
      break;
  }
  return "";
}

// _arguments adds compadd's options behind the first word of what it runs, unless a space stands before that.
std::string action_text(const Completed& value) {
  const std::string action = action_of(value);
  return action.starts_with("_files") ? action : " " + action;
}

std::string flag_text(const DeclaredFlag& flag) {
  std::string text;
  for (const std::string& name : names_of(flag)) {
    std::string spec =
        (flag.repeats ? "*" : "") + name + (flag.value.empty() ? "" : "=") + "[" + escaped(flag.what) + "]";
    if (!flag.value.empty()) spec += ":" + escaped(flag.value) + ":" + action_text(completed_by(flag));
    text += " \\\n        " + quoted(spec);
  }
  return text;
}

std::string argument_text(const DeclaredFlag& argument) {
  return " \\\n        " +
         quoted((argument.repeats ? "*:" : ":") + escaped(argument.names) + ":" + action_text(completed_by(argument)));
}

}  // namespace

std::string zsh_completion(const Declarations& declarations) {
  std::string commands, cases, keys, key_cases;
  for (const DeclaredCommand& command : declarations.commands) {
    commands += "  " + quoted(command.name + ":" + command.what) + "\n";
    cases += "    " + command.name + ")\n      _arguments";
    for (const DeclaredFlag& flag : command.flags) cases += flag_text(flag);
    for (const DeclaredFlag& argument : command.arguments) cases += argument_text(argument);
    cases += "\n      ;;\n";
  }
  for (const CompletedKey& key : completed_keys()) {
    keys += " " + key.key;
    if (const std::string action = action_of(key.value); !action.empty())
      key_cases += "    " + key.key + ") " + action + " ;;\n";
  }
  return std::string(kHead) + "_tandem_key() {\n  case $1 in\n" + key_cases +
         "  esac\n}\n_tandem_command() {\n  case $1 in\n" + cases + "  esac\n}\ntypeset -ga _tandem_keys=(" +
         keys.substr(1) + ")\ntypeset -ga _tandem_commands=(\n" + commands + ")\n" + kTail;
}

}  // namespace tandem
