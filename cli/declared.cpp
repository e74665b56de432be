#include "cli/declared.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

namespace tandem {
namespace {

// A number's range, which CLI11 writes behind its type: "N:INT in [1 - 64]".
std::string range_of(const std::string& type) {
  std::smatch found;
  return std::regex_search(type, found, std::regex(R"(:[A-Z]+ in \[(\S+) - (\S+)\])"))
             ? " (" + found[1].str() + " to " + found[2].str() + ")"
             : "";
}

// "TEXT:{cpu,cuda}" as "cpu|cuda"; else what was declared, without what CLI11 writes behind it.
std::string value_of(const std::string& type) {
  std::smatch found;
  if (std::regex_search(type, found, std::regex(R"(:\{([^}]*)\})"))) {
    std::string words = found[1].str();
    std::replace(words.begin(), words.end(), ',', '|');
    return words;
  }
  const std::string value = std::regex_replace(type, std::regex(R"(:([A-Z]+ in \[.*\]|NONNEGATIVE|POSITIVE)$)"), "");
  const bool number = value == "INT" || value == "UINT" || value == "FLOAT";
  return number ? "N" : value;
}

DeclaredFlag flag_of(const CLI::Option& option) {
  DeclaredFlag flag;
  const std::string type = option.get_type_name();
  const bool takes = option.get_items_expected_max() > 0;
  if (takes) flag.value = value_of(type);
  flag.what = option.get_description() + (takes ? range_of(type) : "");
  flag.standard = option.get_default_str();
  flag.required = option.get_required();
  flag.repeats = takes && (option.get_items_expected_max() > 1 ||
                           option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll);
  if (option.get_positional()) {
    flag.names = option.get_name(/*positional=*/true);
    return flag;
  }
  for (const std::string& name : option.get_snames()) flag.names += "-" + name + ", ";
  for (const std::string& name : option.get_lnames()) flag.names += "--" + name + ", ";
  flag.names.resize(flag.names.size() - 2);
  return flag;
}

using Json = nlohmann::ordered_json;

Json json_of(const DeclaredFlag& flag) {
  return {{"names", flag.names},       {"value", flag.value},       {"what", flag.what},
          {"standard", flag.standard}, {"required", flag.required}, {"repeats", flag.repeats}};
}

DeclaredFlag flag_from(const Json& json) {
  return {json.at("names"),    json.at("value"),    json.at("what"),
          json.at("standard"), json.at("required"), json.at("repeats")};
}

}  // namespace

DeclaredCommand declared_by(const CLI::App& app) {
  DeclaredCommand command{app.get_name().substr(app.get_name().rfind(' ') + 1), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())
      (option->get_positional() ? command.arguments : command.flags).push_back(flag_of(*option));
  return command;
}

std::string declared_text(const DeclaredCommand& command) {
  Json json{{"name", command.name}, {"what", command.what}, {"arguments", Json::array()}, {"flags", Json::array()}};
  for (const DeclaredFlag& argument : command.arguments) json["arguments"].push_back(json_of(argument));
  for (const DeclaredFlag& flag : command.flags) json["flags"].push_back(json_of(flag));
  return json.dump(1) + "\n";
}

DeclaredCommand read_declared(const std::string& text) {
  const Json json = Json::parse(text);
  DeclaredCommand command{json.at("name"), json.at("what"), {}, {}};
  for (const Json& argument : json.at("arguments")) command.arguments.push_back(flag_from(argument));
  for (const Json& flag : json.at("flags")) command.flags.push_back(flag_from(flag));
  return command;
}

}  // namespace tandem
