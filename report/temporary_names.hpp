// The temporary files and folders that this process has, so that a signal handler can remove them.
#pragma once

namespace tandem {

// `name` stays as it is until it is retracted. `folder`: a descriptor of it, where it is one; else -1.
void publish_temporary(const char* name, int folder) noexcept;
void retract_temporary(const char* name) noexcept;

// Removes the files of a folder. Async-signal-safe.
void empty_folder(int descriptor) noexcept;

}  // namespace tandem
