// For bash 4.4 or later, without the package bash-completion. Tables of what is declared, and one function that goes by
// them. The value of a flag is told by a word and what belongs to it: `names machines`, `words cpu cuda`.
#include "apps/completion.hpp"
#include "core/yaml/position.hpp"

namespace tandem {
namespace {

constexpr const char* kFunctions = R"bash(
_tandem_behind() { while IFS= read -r value; do printf '%s%s\n' "$1" "$value"; done; }

# _tandem_values "KIND ..." VALUE: what VALUE may become, one a line.
_tandem_values() {
  local -a kind
  read -ra kind <<<"$1"
  case ${kind[0]-} in
    file) compgen -f -- "$2" ;;
    folder) compgen -d -- "$2" ;;
    words) printf '%s\n' "${kind[@]:1}" ;;
    names | names-or-file)
      "${COMP_WORDS[0]/#\~/$HOME}" list "${kind[1]}" --names 2>/dev/null
      [[ ${kind[0]} == names ]] || compgen -f -- "$2"
      ;;
    many)
      local before=
      [[ $2 != *,* ]] || before=${2%,*},
      _tandem_values "${kind[*]:1}" "${2##*,}" | _tandem_behind "$before"
      ;;
    setting)
      if [[ $2 == *=* ]]; then
        _tandem_values "$(_tandem_key "${2%%=*}")" "${2#*=}" | _tandem_behind "${2%%=*}="
      else
        printf '%s=\n' $_tandem_keys
      fi
      ;;
  esac
}

_tandem() {
  # Bash splits words at "=" and ":". Here they are whole.
  local -a words=()
  local part glue= line=${COMP_LINE:0:COMP_POINT}
  for part in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if [[ -z $part && $line == *[[:blank:]] ]]; then glue=; fi
    if ((${#words[@]})) && [[ $glue || $part == [=:]* ]]; then words[-1]+=$part; else words+=("$part"); fi
    if [[ $part == *[=:] ]]; then glue=yes; else glue=; fi
  done
  local word=${words[-1]} typed=${COMP_WORDS[COMP_CWORD]} command=${words[1]-} before=${words[-2]-} value= flag= kind
  [[ $typed != [=:] ]] || typed=
  local lead=${word%"$typed"} found
  if ((${#words[@]} < 3)); then
    kind="words $_tandem_commands"
  elif [[ $word == --*=* ]]; then
    flag=${word%%=*}= value=${word#*=}
    kind=$(_tandem_flag "$command" "${word%%=*}")
  elif [[ $before == -* && $before != *=* ]] && kind=$(_tandem_flag "$command" "$before") && [[ $kind ]]; then
    value=$word
  elif [[ $word == -* ]]; then
    kind="words $(_tandem_flags "$command")"
  else
    kind=$(_tandem_argument "$command") value=$word
  fi
  COMPREPLY=()
  while IFS= read -r found; do
    found=$flag$found
    if [[ $found == "$word"* ]]; then COMPREPLY+=("${found#"$lead"}"); fi
  done < <(_tandem_values "$kind" "$value")
  case $kind in
    file | folder | names-or-file*) compopt -o filenames 2>/dev/null ;;
  esac
  if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _tandem tandem
)bash";

std::string kind_of(const Completed& value) {
  using Kind = Completed::Kind;
  const std::string many = value.many ? "many " : "";
  switch (value.kind) {
    case Kind::File:
      return "file";
    case Kind::Folder:
      return "folder";
    case Kind::Setting:
      return "setting";
    case Kind::Words:
      return many + "words " + join(value.words, " ");
    case Kind::Names:
      return many + (value.or_file ? "names-or-file " : "names ") + value.list;
    case Kind::Nothing:
      break;
  }
  return "nothing";  // a value that is not completed: it is no argument
}

// A function that prints what belongs to its arguments.
std::string table(const std::string& name, const std::string& rows) {
  return "\n" + name + "() {\n  case \"$*\" in\n" + rows + "  esac\n}\n";
}

std::string row(const std::string& key, const std::string& what) {
  return "    '" + key + "') echo '" + what + "' ;;\n";
}

}  // namespace

std::string bash_completion(const Declarations& declarations) {
  std::string commands, flags, values, arguments, keys, key_values;
  for (const DeclaredCommand& command : declarations.commands) {
    commands += " " + command.name;
    std::string names;
    for (const DeclaredFlag& flag : command.flags)
      for (const std::string& name : names_of(flag)) {
        names += " " + name;
        if (!flag.value.empty()) values += row(command.name + " " + name, kind_of(completed_by(flag)));
      }
    flags += row(command.name, names.substr(1));
    for (const DeclaredFlag& argument : command.arguments)
      arguments += row(command.name, kind_of(completed_by(argument)));
  }
  for (const CompletedKey& key : completed_keys()) {
    keys += " " + key.key;
    if (key.value.kind != Completed::Kind::Nothing) key_values += row(key.key, kind_of(key.value));
  }
  return "# Written by `tandem completion bash` from what the commands declare.\n_tandem_commands='" +
         commands.substr(1) + "'\n_tandem_keys='" + keys.substr(1) + "'\n" + table("_tandem_flags", flags) +
         table("_tandem_flag", values) + table("_tandem_argument", arguments) + table("_tandem_key", key_values) +
         kFunctions;
}

}  // namespace tandem
