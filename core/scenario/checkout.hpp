// Where Tandem was built from. Must not know what is in that folder.
#pragma once

namespace tandem {

extern const char* const kCheckout;  // absolute; may be gone by now

}  // namespace tandem
