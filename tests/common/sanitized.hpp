// Whether this build runs under a sanitizer, where all takes several times as long: tests of long runs take shorter
// ones there, which still go through all of the code.
#pragma once

namespace tandem::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace tandem::testing
