// Words of a command that a message shows, for a shell to read back as they were. Must not know commands.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// `word` as it is where no shell reads anything else in it, else in quotes. One that begins with "-" would be a flag:
// as a path it begins with "./".
std::string shell_path(std::string_view word);

}  // namespace tandem
