// CHECK: an invariant of the program, on in every build. A failure is a bug: it prints the operands and aborts.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace tandem::detail {

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  std::fprintf(stderr, "%s:%d: bug: CHECK(%s) failed%s%s\n", file, line, condition, detail.empty() ? "" : ": ",
               detail.c_str());
  std::abort();
}

template <typename... Parts>
[[noreturn]] void check_failed_with(const char* file, int line, const char* condition, const Parts&... parts) {
  std::ostringstream out;
  ((out << parts << ' '), ...);
  check_failed(file, line, condition, out.str());
}

}  // namespace tandem::detail

// CHECK(condition, operands to print...)
#define CHECK(condition, ...)                                                                         \
  do {                                                                                                \
    if (!(condition)) [[unlikely]]                                                                    \
      ::tandem::detail::check_failed_with(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
