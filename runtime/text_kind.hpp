// Files that are given as text and are none. Must not know files.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// "gzip (compressed)", "binary data (...)": what the beginning of a file looks like, if not like text; else "".
std::string not_text(std::string_view head);
// The same of bytes from anywhere in a file, which no format marks.
std::string binary_text(std::string_view bytes);

}  // namespace tandem
