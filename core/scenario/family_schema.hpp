// The schema of scenarios: what stands in scenario.base.json, and what families and transforms declare. Must not know
// either.
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

struct DeclaredKeys {
  std::vector<DeclaredFamily> families;
  std::vector<FamilyKey> parallel;  // of transforms, under `parallel`
  std::vector<FamilyKey> generate;  // under `generate`: of texts
  std::vector<FamilyKey> denoise;   // of images, where the first of them is given, and none of the others then
};

// As a JSON Schema, for editors (docs/scenario.schema.json) ...
std::string scenario_schema_text(const DeclaredKeys& declared);
// ... and as the checker walks it.
Schema scenario_schema(const DeclaredKeys& declared);

}  // namespace tandem
