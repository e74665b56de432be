// A scenario as its file has it but for what is wrong there, so that what depends on the rest can still be looked at.
// Must not know policies or families.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "core/yaml/known_names.hpp"
#include "core/yaml/values.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {

inline constexpr const char *kMachineSection = "machine", *kWorkloadSection = "workload", *kPolicySection = "policy";

// "workload", "layers" of "workload.layers"; "workload" of it.
std::vector<std::string> keys_of(const std::string& path);
std::string section_of(const std::string& path);

struct SoundCopy {
  Values values;
  Scenario scenario;
  std::set<std::string> replaced;  // sections that are not what the file says
};

// Takes the key out of the tree; of a list the whole, since its items are no use without one another.
void take_out(Node& root, const std::string& path);
// Without what is faulty: defaults take its place, and where there are none, stand-ins for the section or nothing. None
// where that does not help.
std::optional<SoundCopy> sound_copy(Node root, const std::set<std::string>& faulty, const KnownNames& names);

}  // namespace tandem
