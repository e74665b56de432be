#include "report/origin.hpp"

#include <fmt/format.h>

#include "core/base/shell_text.hpp"
#include "report/html_page.hpp"
#include "report/provenance.hpp"

namespace tandem {
namespace {

// Said by main before anything else runs.
Origin& program() {
  static Origin origin;
  return origin;
}

std::string row(const char* name, const std::string& markup) {
  return markup.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, markup);
}

std::string folded(const char* title, const std::string& text) {
  if (text.empty()) return "";
  return fmt::format("<details><summary>{}</summary><pre tabindex=\"0\">{}</pre></details>\n", title,
                     escape_html(text));
}

}  // namespace

void tell_program(const std::string& version, const std::vector<std::string>& arguments) {
  program().version = version;
  std::string& command = program().command;
  command.clear();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i > 0) {
      command += " " + shell_word(arguments[i]);
      continue;
    }
    std::string name = arguments[i].substr(arguments[i].rfind('/') + 1);
    if (name.starts_with("tandem-")) name[std::string("tandem").size()] = ' ';
    command = name;
  }
}

void tell_call(const std::string& version, const std::string& call) {
  program().version = version;
  program().command = call;
}

Origin origin_of_program() { return program(); }

Origin origin_of(const Scenario& scenario) {
  Origin origin = program();
  origin.path = scenario.path;
  origin.scenario = scenario.text;
  origin.machine = scenario.machine.name;
  origin.provenance = provenance(scenario.machine);
  origin.profile = scenario.machine.text;
  return origin;
}

nlohmann::ordered_json origin_json(const Origin& origin) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object(), machine = nlohmann::ordered_json::object();
  const auto put = [](nlohmann::ordered_json& into, const char* key, const std::string& text) {
    if (!text.empty()) into[key] = text;
  };
  put(json, "version", origin.version);
  put(json, "command", origin.command);
  put(json, "scenario", origin.scenario);
  put(machine, "name", origin.machine);
  put(machine, "provenance", origin.provenance);
  put(machine, "profile", origin.profile);
  if (!machine.empty()) json["machine"] = machine;
  return json;
}

void put_origin(nlohmann::ordered_json& result, const Origin& origin) {
  if (!origin.version.empty()) result["origin"] = origin_json(origin);
}

std::string origin_html(const Origin& origin) {
  if (origin.version.empty() && origin.machine.empty()) return "";
  const std::string machine =
      plain_html(origin.machine) + (origin.provenance.empty() ? "" : ": " + plain_html(origin.provenance));
  std::string text = "<dl class=\"origin\">\n" +
                     row("Command", origin.command.empty() ? "" : "<code>" + plain_html(origin.command) + "</code>") +
                     row("Version", origin.version.empty() ? "" : "Tandem " + plain_html(origin.version)) +
                     row("Scenario", plain_html(origin.path)) + row("Machine", machine) + "</dl>\n";
  text += folded(origin.scenario.find("\n---\n") == std::string::npos ? "The scenario, with all that was set"
                                                                      : "The scenarios, with all that was set",
                 origin.scenario);
  text += folded("The machine's profile", origin.profile);
  return fmt::format("<section id=\"origin\">\n<h2>How this was made</h2>\n{}</section>\n", text);
}

}  // namespace tandem
