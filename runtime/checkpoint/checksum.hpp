// XXH3-128 over a stream of bytes, as `xxhsum -H2` prints it. Must not know files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tandem {

struct Checksum {
  std::uint64_t high = 0, low = 0;
  bool operator==(const Checksum&) const = default;
  std::string text() const;  // 32 hexadecimal digits
};

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  void update(const void* bytes, std::size_t count);
  Checksum checksum() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Checksum checksum_of(const std::string& bytes);

}  // namespace tandem
