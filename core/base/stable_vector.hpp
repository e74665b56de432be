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
      : slabs_(std::exchange(other.slabs_, {})), size_(std::exchange(other.size_, 0)) {}
  StableVector& operator=(StableVector other) noexcept {
    std::swap(slabs_, other.slabs_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~StableVector() {
    for (std::size_t i = 0; i < size_; ++i) std::destroy_at(slot(i));
    for (std::size_t k = 0; k < kSlabs && slabs_[k] != nullptr; ++k)
      std::allocator<T>().deallocate(slabs_[k], slab_size(k));
  }

  T& operator[](std::size_t i) { return *slot(i); }
  const T& operator[](std::size_t i) const { return *slot(i); }
  std::size_t size() const { return size_; }

  void push_back(const T& value) { push_back(T(value)); }
  void push_back(T&& value) {
    const Position at = position(size_);
    // Memory without elements: what a large slab never uses is never touched.
    if (slabs_[at.slab] == nullptr) slabs_[at.slab] = std::allocator<T>().allocate(slab_size(at.slab));
    std::construct_at(slot(size_), std::move(value));
    ++size_;
  }

 private:
  // Slab k holds kFirstSlab * 2^k elements, so that the table of slabs has a fixed size and never moves.
  static constexpr std::size_t kFirstSlabBits = 8, kFirstSlab = 1 << kFirstSlabBits;
  static constexpr std::size_t kSlabs = 40;
  static constexpr std::size_t slab_size(std::size_t slab) { return kFirstSlab << slab; }

  struct Position {
    std::size_t slab, offset;
  };
  // Counted from kFirstSlab, the leading bit of an index says the slab, and the others the place in it.
  static Position position(std::size_t i) {
    const std::size_t shifted = i + kFirstSlab;
    const auto leading = static_cast<std::size_t>(std::bit_width(shifted | 1)) - 1;  // | 1: plainly not 0
    return {leading - kFirstSlabBits, shifted & ~(std::size_t{1} << leading)};
  }
  T* slot(std::size_t i) const {
    if (i < kFirstSlab) return slabs_[0] + i;  // most vectors are short
    const Position at = position(i);
    return slabs_[at.slab] + at.offset;
  }

  std::array<T*, kSlabs> slabs_{};
  std::size_t size_ = 0;
};

}  // namespace tandem
