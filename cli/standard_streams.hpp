// Descriptors 0 to 2, and what a program writes to its standard output. Must not know what is written.
#pragma once

#include <string>

namespace tandem {

// Closed ones are opened, so that no file gets their number; what is then written to standard output still fails.
// To be called before anything is opened.
void guard_standard_descriptors();

// Throws DeviceError if not all of it could be written.
void write_to_stdout(const std::string& text);
// That all that was printed to standard output has been written. Throws as above.
void finish_stdout();

}  // namespace tandem
