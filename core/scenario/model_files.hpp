// `workload: {model: NAME}`, a file of models/, and `workload: {config: PATH}`, a config.json of Hugging Face's
// transformers: both become the family's keys that stand for them, where the scenario does not give them itself. Must
// not know families: which field is which key is data (models/configs).
#pragma once

#include <string>

#include "core/yaml/findings.hpp"
#include "core/yaml/known_names.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {

// A path of an import becomes absolute, so that logs replay from anywhere.
// `workload`: that section of a scenario in `directory`. A field of a config.json that cannot be honoured is an error
// that names it, and what can.
void resolve_model(Node& workload, const std::string& directory, const KnownNames& names, Findings& findings);

}  // namespace tandem
