// An append-only vector whose elements never move: a worker may read an element that was there when its command was
// submitted, while the scheduler's thread appends more. Not for concurrent appends; must not know what it holds.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

namespace tandem {

template <typename T>
class StableVector {
 public:
  StableVector() = default;
  StableVector(const StableVector& other) : StableVector() {
    for (std::size_t i = 0; i < other.size(); ++i) push_back(other[i]);
  }
  StableVector(StableVector&& other) noexcept
      : chunks_(std::exchange(other.chunks_, {})), size_(std::exchange(other.size_, 0)) {}
  StableVector& operator=(StableVector other) noexcept {
    std::swap(chunks_, other.chunks_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~StableVector() {
    for (std::size_t i = 0; i < size_; ++i) std::destroy_at(slot(i));
    for (std::size_t k = 0; k < kChunks && chunks_[k] != nullptr; ++k)
      std::allocator<T>().deallocate(chunks_[k], chunk_size(k));
  }

  T& operator[](std::size_t i) { return *slot(i); }
  const T& operator[](std::size_t i) const { return *slot(i); }
  std::size_t size() const { return size_; }

  void push_back(const T& value) { push_back(T(value)); }
  void push_back(T&& value) {
    const Position at = position(size_);
    // Memory without elements: what a large chunk never uses is never touched.
    if (chunks_[at.chunk] == nullptr) chunks_[at.chunk] = std::allocator<T>().allocate(chunk_size(at.chunk));
    std::construct_at(slot(size_), std::move(value));
    ++size_;
  }

 private:
  // Chunk k holds kFirstChunk * 2^k elements, so that the table of chunks has a fixed size and never moves.
  static constexpr std::size_t kFirstChunkBits = 8, kFirstChunk = 1 << kFirstChunkBits;
  static constexpr std::size_t kChunks = 40;
  static constexpr std::size_t chunk_size(std::size_t chunk) { return kFirstChunk << chunk; }

  struct Position {
    std::size_t chunk, offset;
  };
  // Counted from kFirstChunk, the leading bit of an index says the chunk, and the others the place in it.
  static Position position(std::size_t i) {
    const std::size_t shifted = i + kFirstChunk;
    const auto leading = static_cast<std::size_t>(std::bit_width(shifted | 1)) - 1;  // | 1: plainly not 0
    return {leading - kFirstChunkBits, shifted & ~(std::size_t{1} << leading)};
  }
  T* slot(std::size_t i) const {
    const Position at = position(i);
    return chunks_[at.chunk] + at.offset;
  }

  std::array<T*, kChunks> chunks_{};
  std::size_t size_ = 0;
};

}  // namespace tandem
