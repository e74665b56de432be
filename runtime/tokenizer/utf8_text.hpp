// Texts as valid UTF-8, and in Unicode's canonical composed form (NFC). Must not know tokens or files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

// The text with U+FFFD for what is no UTF-8, one for each longest beginning of a character, as Python's
// errors="replace" and the Unicode standard (section 3.9) have it. Adds how many there were to `replaced`.
std::string valid_utf8(std::string text, std::int64_t& replaced);

// NFC of valid UTF-8.
std::string composed(std::string_view text);

}  // namespace tandem
