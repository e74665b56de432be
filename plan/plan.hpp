// `tandem plan` as a program: flags, search, answer, files. Must not know how candidates are tried.
#pragma once

namespace tandem {

// Returns an exit code: 3 where nothing fits.
int plan(int argc, char** argv);

}  // namespace tandem
