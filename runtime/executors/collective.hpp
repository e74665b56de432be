// What commands need of the other ranks: collectives among those that share a stage's gradients, and bytes from one
// rank to another. Collectives are matched across ranks by their order, which is graph order on every rank. Must not
// know ops, arenas or lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/graph.hpp"

namespace tandem {

// On a device, calls enqueue in the stream that is the thread's current one, where the work is then done.
class Collective {
 public:
  struct Numbers {
    std::byte* data = nullptr;
    std::int64_t elements = 0;
  };
  virtual ~Collective() = default;
  // All of these among the ranks of a group (Graph::group), by its number, of which this rank is one. In the order of
  // its members.
  // Replaces data by its mean over the ranks: the sum, then one division. Equal to the bit on all of them.
  // Throws DeviceError, naming the rank, when a peer is lost.
  virtual void all_reduce_mean(std::int32_t group, std::byte* data, std::int64_t elements, DType type) = 0;
  // The same of several at once: a bucket of gradients, for which ranks wait for each other once. From three ranks on
  // sums may be taken in another order than one by one.
  virtual void all_reduce_means(std::int32_t group, std::span<const Numbers> bucket, DType type) {
    for (const Numbers& numbers : bucket) all_reduce_mean(group, numbers.data, numbers.elements, type);
  }
  // The same, but by the sum.
  virtual void all_reduce_sum(std::int32_t group, std::byte* data, std::int64_t elements, DType type) = 0;
  // Member m's `part` becomes the m-th part of the sum, or the mean, of `whole` over the ranks, each of `elements`
  // elements: the same bits as all_reduce_sum, or all_reduce_mean.
  virtual void reduce_scatter_sum(std::int32_t group, const std::byte* whole, std::byte* part, std::int64_t elements,
                                  DType type) = 0;
  virtual void reduce_scatter_mean(std::int32_t group, const std::byte* whole, std::byte* part, std::int64_t elements,
                                   DType type) = 0;
  // `whole` becomes all parts, of `bytes` each, one after another.
  virtual void all_gather(std::int32_t group, const std::byte* part, std::byte* whole, std::int64_t bytes) = 0;
  // Of values of `bytes` each, which members have one by one: all of them, in `writes`. `owners`: of each, whose it is;
  // `reads`: this rank's own, in that order.
  virtual void gather_each(std::int32_t group, std::int64_t members, const std::vector<std::int64_t>& owners,
                           std::int64_t bytes, const std::vector<std::byte*>& reads,
                           const std::vector<std::byte*>& writes);
  // Member m gets this rank's m-th part, of `bytes`; the m-th part of `to` is what came from there.
  virtual void exchange_parts(std::int32_t group, const std::byte* from, std::byte* to, std::int64_t bytes) = 0;
  // Member m's bytes go to the next member of a ring, or `back` to the one before, and `to` is what came from the other
  // side.
  virtual void shift(std::int32_t group, const std::byte* from, std::byte* to, std::int64_t bytes, bool back) = 0;
  // Within this rank's memory; of rows, each `pitch` bytes after the one before, so many, `bytes` long each.
  virtual void copy(std::byte* target, const std::byte* source, std::int64_t bytes);
  template <typename Byte>
  struct Rows {
    Byte* first = nullptr;
    std::int64_t pitch = 0;
  };
  virtual void copy_rows(Rows<std::byte> target, Rows<const std::byte> source, std::int64_t bytes, std::int64_t rows);
  // Each sum is rounded to the type.
  virtual void add(std::byte* to, const std::byte* more, std::int64_t elements, DType type);
  // Both return once the bytes may be changed, or are there. A pair is matched by its ranks and the tag, which no other
  // pair under way between them has. From any thread, several at once.
  virtual void send(const std::byte* data, std::int64_t bytes, Rank to, std::int32_t tag) = 0;
  virtual void receive(std::byte* data, std::int64_t bytes, Rank from, std::int32_t tag) = 0;
};

}  // namespace tandem
