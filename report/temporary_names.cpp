#include "report/temporary_names.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "report/temporary_file.hpp"

namespace tandem {
namespace {

// At most a few at a time, each null or a string that its owner clears here before it goes.
struct Slot {
  std::atomic<const char*> name{nullptr};
  std::atomic<int> folder{-1};
};
std::array<Slot, 32> slots;
static_assert(std::atomic<const char*>::is_always_lock_free, "read by a signal handler");

}  // namespace

void publish_temporary(const char* name, int folder) noexcept {
  for (Slot& slot : slots) {
    const char* none = nullptr;
    if (slot.name.load() != nullptr) continue;
    slot.folder = folder;
    if (slot.name.compare_exchange_strong(none, name)) return;
  }
}

void retract_temporary(const char* name) noexcept {
  for (Slot& slot : slots) {
    const char* expected = name;
    if (slot.name.compare_exchange_strong(expected, nullptr)) return;
  }
}

// readdir() allocates; the kernel's call does not.
void empty_folder(int descriptor) noexcept {
  alignas(dirent64) std::array<char, 4096> buffer;
  for (bool again = true; again;) {
    again = false;
    ::lseek(descriptor, 0, SEEK_SET);
    for (;;) {
      const long bytes = ::syscall(SYS_getdents64, descriptor, buffer.data(), buffer.size());
      if (bytes <= 0) break;
      for (long at = 0; at < bytes;) {
        const char* entry = buffer.data() + at;
        unsigned short length = 0;
        std::memcpy(&length, entry + offsetof(dirent64, d_reclen), sizeof length);
        again = ::unlinkat(descriptor, entry + offsetof(dirent64, d_name), 0) == 0 || again;
        at += length;
      }
    }
  }
}

void remove_temporary_files() noexcept {
  for (Slot& slot : slots) {
    const char* name = slot.name.load();
    if (name == nullptr) continue;
    const int folder = slot.folder.load();
    if (folder < 0) {
      ::unlink(name);
    } else {
      empty_folder(folder);
      ::rmdir(name);
    }
  }
}

}  // namespace tandem
