// tandem-train-policy: trains the learned policy's network. A composition root: joins flags and the simulator.
#include <CLI/CLI.hpp>

#include "cli/cli.hpp"
#include "plan/train_policy/train_policy.hpp"

int main(int argc, char** argv) { return tandem::run_main(argc, argv, tandem::train_policy); }
