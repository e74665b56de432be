// tandem-plan: searches for the scenario that trains fastest. A composition root: joins flags, the simulator and the
// search.
#include <CLI/CLI.hpp>

#include "cli/cli.hpp"
#include "plan/plan.hpp"

int main(int argc, char** argv) { return tandem::run_main(argc, argv, tandem::plan); }
