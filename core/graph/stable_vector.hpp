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
  StableVector(const StableVector& other) {
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
    T*& chunk = chunks_[chunk_of(size_)];
    // Memory without elements: what a large chunk never uses is never touched.
    if (chunk == nullptr) chunk = std::allocator<T>().allocate(chunk_size(chunk_of(size_)));
    std::construct_at(slot(size_), std::move(value));
    ++size_;
  }

 private:
  // Chunk k holds kFirstChunk * 2^k elements, so that the table of chunks has a fixed size and never moves.
  static constexpr std::size_t kFirstChunk = 256;
  static constexpr std::size_t kChunks = 40;

  static std::size_t chunk_of(std::size_t i) {
    return static_cast<std::size_t>(std::bit_width(i / kFirstChunk + 1) - 1);
  }
  static std::size_t chunk_size(std::size_t chunk) { return kFirstChunk << chunk; }
  T* slot(std::size_t i) const {
    const std::size_t chunk = chunk_of(i);
    return &chunks_[chunk][i + kFirstChunk - chunk_size(chunk)];
  }

  std::array<T*, kChunks> chunks_{};
  std::size_t size_ = 0;
};

}  // namespace tandem
