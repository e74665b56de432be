// Finds hardware profiles by name or path and resolves derive_from, on trees. Must not know any other key.
#pragma once

#include <string>
#include <vector>

#include "core/yaml/findings.hpp"
#include "core/yaml/known_names.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {

// Replaces what `machine` names by the profile's tree, self-contained: derive_from resolved, `name` set. `directory` is
// the scenario's folder. A map stays, but for derive_from. A file that is missing or derives from itself is a finding,
// and what it leaves unknown is marked there.
void resolve_machine(Node& machine, const std::string& directory, const KnownNames& names, Findings& findings);
// The same for a profile that was read from `path` (or given as a text named so).
void resolve_profile(Node& profile, const std::string& path, const KnownNames& names, Findings& findings);

}  // namespace tandem
