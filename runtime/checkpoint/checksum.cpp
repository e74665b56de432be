#include "runtime/checkpoint/checksum.hpp"

#define XXH_INLINE_ALL  // header only: no run-time library
#include <xxhash.h>

#include <array>
#include <cstdio>

namespace tandem {

std::string Checksum::text() const {
  std::array<char, 40> digits;
  const int count = std::snprintf(digits.data(), digits.size(), "%016llx%016llx", static_cast<unsigned long long>(high),
                                  static_cast<unsigned long long>(low));
  return {digits.data(), static_cast<std::size_t>(count)};
}

struct Hasher::State {
  XXH3_state_t xxh3;
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }
Hasher::~Hasher() = default;

void Hasher::update(const void* bytes, std::size_t count) { XXH3_128bits_update(&state_->xxh3, bytes, count); }

Checksum Hasher::checksum() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return {hash.high64, hash.low64};
}

Checksum checksum_of(const std::string& bytes) {
  Hasher hasher;
  hasher.update(bytes.data(), bytes.size());
  return hasher.checksum();
}

}  // namespace tandem
