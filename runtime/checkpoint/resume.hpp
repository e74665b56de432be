// What --resume names, made the start of a scenario's run. Must not know flags.
#pragma once

#include <string>

#include "core/scenario/scenario.hpp"

namespace tandem {

// `path`: a directory of checkpoints, of which the latest is taken, or one checkpoint's folder. Sets
// Scenario::first_step and resume_folder. Throws ConfigError where there is none, where it is of another run (which
// key, both values), or, if `verify`, where a file is damaged (which one, and the latest earlier checkpoint that is
// whole).
void resume_from(Scenario& scenario, const std::string& path, bool verify);

}  // namespace tandem
