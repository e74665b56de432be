#include "calibration/text.hpp"

#include <cstdarg>
#include <cstdio>

#include "core/base/check.hpp"

namespace tandem {

std::string printed(const char* format, ...) {
  std::va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  CHECK(length >= 0, format);
  std::string text(static_cast<std::size_t>(length), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

}  // namespace tandem
