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
  StableVector(const StableVector& other) { append_all(other); }
  StableVector(StableVector&& other) noexcept
      : chunks_(std::move(other.chunks_)), size_(std::exchange(other.size_, 0)) {}
  StableVector& operator=(StableVector other) noexcept {
    std::swap(chunks_, other.chunks_);
    std::swap(size_, other.size_);
    return *this;
  }

  T& operator[](std::size_t i) { return *slot(i); }
  const T& operator[](std::size_t i) const { return *slot(i); }
  std::size_t size() const { return size_; }

  void push_back(T value) {
    auto& chunk = chunks_[chunk_of(size_)];
    if (!chunk) chunk = std::make_unique<T[]>(kFirstChunk << chunk_of(size_));
    *slot(size_) = std::move(value);
    ++size_;
  }

 private:
  // Chunk k holds kFirstChunk * 2^k elements, so that the table of chunks has a fixed size and never moves.
  static constexpr std::size_t kFirstChunk = 256;
  static constexpr std::size_t kChunks = 40;

  static std::size_t chunk_of(std::size_t i) {
    return static_cast<std::size_t>(std::bit_width(i / kFirstChunk + 1) - 1);
  }
  T* slot(std::size_t i) const {
    const std::size_t chunk = chunk_of(i);
    return &chunks_[chunk][i + kFirstChunk - (kFirstChunk << chunk)];
  }
  void append_all(const StableVector& other) {
    for (std::size_t i = 0; i < other.size(); ++i) push_back(other[i]);
  }

  std::array<std::unique_ptr<T[]>, kChunks> chunks_;
  std::size_t size_ = 0;
};

}  // namespace tandem
