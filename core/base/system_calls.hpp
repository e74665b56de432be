// What every call on a file needs: it is made again where a signal interrupted it, and its error is told apart by whose
// it is to mend. Makes no call itself.
#pragma once

#include <cerrno>

namespace tandem {

// A call that returns -1 and sets errno where it fails.
template <class Call>
auto uninterrupted(Call call) {
  for (;;)
    if (const auto result = call(); result >= 0 || errno != EINTR) return result;
}

// Of what close() returned: Linux has closed the descriptor, so that another close could be of another thread's file.
inline bool is_closed(int result) { return result == 0 || errno == EINTR; }

// Whether the system failed, or has no room, rather than that a name is wrong or may not be used: nothing that a person
// wrote is at fault.
inline bool is_of_the_system(int error) {
  switch (error) {
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case EINTR:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ESTALE:
    case EFBIG:
      return true;
    default:
      return false;
  }
}

}  // namespace tandem
