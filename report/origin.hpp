// What a result was made of, so that it can be made again: the program's version, its command line, the scenario with
// all that was set, the machine and where its figures come from. Must not know results or formats of files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/scenario/scenario.hpp"

namespace tandem {

struct Origin {
  std::string version;     // "0.3.0"; "": not told
  std::string command;     // as a shell takes it; "": not told
  std::string path;        // of the scenario
  std::string scenario;    // YAML, after --set and with what inline maps say; "": there is not one
  std::string machine;     // its name
  std::string provenance;  // of its figures, in words
  std::string profile;     // YAML
};

// Said once by a program's main, of itself. `arguments` begin with the program, whose folder is left out: a part named
// tandem-simulate is told as `tandem simulate`.
void tell_program(const std::string& version, const std::vector<std::string>& arguments);
// The same where a library is called, in the caller's words: "tandem.simulate('demo')".
void tell_call(const std::string& version, const std::string& call);
// Without a scenario's parts: of what has none, or many.
Origin origin_of_program();
Origin origin_of(const Scenario& scenario);

// {version, command, scenario, machine: {name, provenance, profile}}, without what is "".
nlohmann::ordered_json origin_json(const Origin& origin);
// As "origin" of a result; nothing where the program has told nothing of itself.
void put_origin(nlohmann::ordered_json& result, const Origin& origin);
// A section of a page, markup, whose long texts are folded.
std::string origin_html(const Origin& origin);

}  // namespace tandem
