// The measured half of `tandem validate`, in a program that needs no simulator: many scenarios run for real, one after
// the other in one process. Must not know predictions.
#pragma once

namespace tandem {

// The flag that asks the training program for it.
inline constexpr const char* kMeasureOnly = "--measure-only";

// tandem-train --measure-only RESULTS [FLAGS] [FILES]. Returns an exit code, and throws as a training does for bad
// input; a scenario that fails is a line of RESULTS.
int measure(int argc, char** argv);

}  // namespace tandem
