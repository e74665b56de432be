// `tandem generate`: prompts in, texts out, by a scenario that generates.
#pragma once

namespace tandem {

// The first word that asks the training program for it.
inline constexpr const char* kGenerate = "--generate";

// tandem-train --generate [FLAGS] FILE, of which `argv` begins with that word. Returns an exit code, and throws as a
// training does.
int generate(int argc, char** argv);

}  // namespace tandem
