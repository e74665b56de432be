// The schema of scenarios: what stands in scenario.base.json, and what the families declare. Must not know families.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/family_keys.hpp"
#include "core/yaml/schema.hpp"

namespace tandem {

struct DeclaredFamily {
  std::string_view name;
  const FamilyKeys* keys;
};

// As a JSON Schema, for editors (docs/scenario.schema.json) ...
std::string scenario_schema_text(const std::vector<DeclaredFamily>& families);
// ... and as the checker walks it.
Schema scenario_schema(const std::vector<DeclaredFamily>& families);

}  // namespace tandem
