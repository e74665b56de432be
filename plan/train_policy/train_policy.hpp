// `tandem train-policy FILE`: the network of the policy `learned`, trained in the simulator on mixes that are drawn.
// Must not know how steps are simulated.
#pragma once

namespace tandem {

int train_policy(int argc, char** argv);

}  // namespace tandem
