// An append-only vector whose elements never move and can be forgotten one by one: it takes the memory of what is not
// forgotten, however many there were. A worker may read an element that was there when its command was submitted, while
// the scheduler's thread appends and forgets others. Not for concurrent writers; must not know what it holds.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "core/base/stable_vector.hpp"

namespace tandem {

template <typename T>
class ForgettingVector {
 public:
  // Memory goes back when all of so many neighbours are forgotten; the table of chunks likewise.
  static constexpr std::size_t kChunk = 128, kTable = 128;

  // Of elements that are not forgotten.
  T& operator[](std::size_t i) { return at(chunk(i), i); }
  const T& operator[](std::size_t i) const { return at(chunk(i), i); }
  std::size_t size() const { return size_; }  // with what is forgotten
  // Forgotten, and all neighbours too: there is nothing to read.
  bool is_gone(std::size_t i) const {
    const Table& table = tables_[i / (kChunk * kTable)];
    return table.parts == nullptr || (*table.parts)[i / kChunk % kTable].parts == nullptr;
  }
  // What memory is held for.
  std::size_t held() const { return held_chunks_ * kChunk; }

  void push_back(T value) {
    if (size_ % (kChunk * kTable) == 0) tables_.push_back(Table::fresh());
    if (size_ % kChunk == 0) {
      chunk(size_) = Chunk::fresh();
      ++held_chunks_;
    }
    (*this)[size_++] = std::move(value);
  }
  void grow(std::size_t size, const T& value = T()) {
    while (size_ < size) push_back(value);
  }
  // Each element once. What it held is given back at once; it reads as `instead` while its neighbours are there.
  void forget(std::size_t i, T instead = T()) {
    (*this)[i] = std::move(instead);
    if (!chunk(i).forget_one()) return;
    --held_chunks_;
    tables_[i / (kChunk * kTable)].forget_one();
  }

 private:
  // So many parts, until each is forgotten.
  template <typename Part, std::size_t kParts>
  struct Group {
    std::unique_ptr<std::array<Part, kParts>> parts;  // null: all forgotten
    std::size_t forgotten = 0;

    Group() = default;
    static Group fresh() {
      Group group;
      group.parts = std::make_unique<std::array<Part, kParts>>();
      return group;
    }
    Group(Group&&) noexcept = default;
    Group& operator=(Group&&) noexcept = default;
    Group(const Group& other)
        : parts(other.parts ? std::make_unique<std::array<Part, kParts>>(*other.parts) : nullptr),
          forgotten(other.forgotten) {}
    Group& operator=(const Group& other) { return *this = Group(other); }
    ~Group() = default;
    // True if it was the last.
    bool forget_one() {
      if (++forgotten < kParts) return false;
      parts.reset();
      return true;
    }
  };
  using Chunk = Group<T, kChunk>;
  using Table = Group<Chunk, kTable>;

  Chunk& chunk(std::size_t i) { return (*tables_[i / (kChunk * kTable)].parts)[i / kChunk % kTable]; }
  const Chunk& chunk(std::size_t i) const { return (*tables_[i / (kChunk * kTable)].parts)[i / kChunk % kTable]; }
  static T& at(const Chunk& of, std::size_t i) { return (*of.parts)[i % kChunk]; }

  StableVector<Table> tables_;
  std::size_t size_ = 0, held_chunks_ = 0;
};

}  // namespace tandem
