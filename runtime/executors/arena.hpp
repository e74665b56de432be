// The memory of one tier of one rank: a mapped range of fixed size in which core's pools choose all offsets.
// Must not know values, commands or who uses which bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace tandem {

class Arena {
 public:
  Arena() = default;
  // Maps `bytes` of zeroed memory at a page border; pages cost nothing until touched. With `lock`, all of it is brought
  // in and kept in memory now. Throws DeviceError, naming the arena and the size, when the system refuses.
  Arena(std::string name, std::int64_t bytes, bool lock);
  // Takes over memory that something else has made; `release` gives it back.
  Arena(std::string name, std::byte* data, std::int64_t bytes, std::function<void(std::byte*)> release);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::int64_t size_bytes() const { return bytes_; }
  // The address of [offset, offset + bytes). CHECKs that the range lies inside: core never hands out another.
  std::byte* at(std::int64_t offset, std::int64_t bytes) const;
  bool contains(const void* address) const;

 private:
  std::string name_;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::function<void(std::byte*)> release_;
};

}  // namespace tandem
