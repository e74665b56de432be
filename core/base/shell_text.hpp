// Words of a command that a message shows, for a shell to read back as they were. Must not know commands.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// `word` as it is where no shell reads anything else in it, else in quotes.
std::string shell_word(std::string_view word);
// The same of a path: one that begins with "-" would be a flag, and so begins with "./".
std::string shell_path(std::string_view word);

}  // namespace tandem
