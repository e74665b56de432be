// What the scenario tests share: fixed names, so that messages do not change with every new policy, and the files of
// cases (name, text, expected messages, one a line).
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/run/load.hpp"
#include "core/run/making.hpp"
#include "core/scenario/family_schema.hpp"
#include "core/scenario/reader.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/source_dir.hpp"

namespace tandem::test {

inline const std::string kHostileFolder = source_path("tests/data/hostile");

inline KnownNames fixed_names() {
  static const std::vector<std::string> kFamilies = {"bert", "gpt", "gpt_decode", "layers", "mlp"};
  static const auto kSchema = [] {
    DeclaredKeys declared{{}, {}, generation_keys(), denoising_keys()};
    for (const std::string& name : kFamilies) declared.families.push_back({name, find_workload(name)->keys});
    return std::make_shared<const Schema>(scenario_schema(declared));
  }();
  KnownNames names;
  names.scenario = kSchema;
  names.workloads = kFamilies;
  names.optimizers = {{"adam", {0.9, 0.999}}, {"adamw", {0.9, 0.999}}, {"lion", {0.9, 0.99}}};
  names.policies = {{"cotrain", {"separation", "prefetch"}},
                    {"on_demand", {"home", "optimizer"}},
                    {"resident", {}},
                    {"zero_offload", {"delayed_update"}}};
  names.profile_dirs = {kHostileFolder + "/machines"};
  return names;
}

// The message of the ConfigError that reading gives, "" if it gives none. `makes`: what the policy and the family
// refuse is told, too.
inline std::string scenario_error(const std::string& text, const std::vector<std::string>& overrides = {},
                                  bool makes = true) {
  try {
    const KnownNames names = fixed_names();
    const Making making = [&](const Node& root, Findings& findings) { check_making(root, names, findings); };
    read_scenario(text, "bad.yaml", overrides, kHostileFolder + "/machines", names, makes ? making : Making());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

inline std::string profile_error(const std::string& text) {
  try {
    read_profile(text, "bad.yaml", fixed_names());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

struct HostileCase {
  std::string name;
  bool is_profile = false;
  std::vector<std::string> overrides;
  std::string text;
  std::string expected;
};

// \xNN is a byte, \\ a backslash; any other backslash stands for itself.
inline std::string decoded(const std::string& line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line.compare(i, 2, "\\x") == 0 && i + 3 < line.size()) {
      out += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else {
      if (line.compare(i, 2, "\\\\") == 0) ++i;
      out += line[i];
    }
  }
  return out;
}

inline std::vector<HostileCase> read_cases(const std::string& path) {
  std::vector<HostileCase> cases;
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  enum class Section { Head, Text, Expect } section = Section::Head;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("@case ")) {
      cases.push_back({line.substr(6), false, {}, "", ""});
      section = Section::Head;
    } else if (line == "@kind profile") {
      cases.back().is_profile = true;
    } else if (line.starts_with("@set ")) {
      cases.back().overrides.push_back(decoded(line.substr(5)));
    } else if (line == "@text") {
      section = Section::Text;
    } else if (line == "@expect") {
      section = Section::Expect;
    } else if (section == Section::Text) {
      cases.back().text += decoded(line) + "\n";
    } else if (section == Section::Expect && !line.empty()) {
      cases.back().expected += (cases.back().expected.empty() ? "" : "\n") + line;
    }
  }
  return cases;
}

}  // namespace tandem::test
