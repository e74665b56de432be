// One group of ranks: collectives among threads of this process, and ones of which any call may fail, hang or be late.
// As with processes, a rank that ends is a peer that is lost to those who wait for it. Must not know commands.
#pragma once

#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "runtime/executors/collective.hpp"
#include "tests/faults/faults.hpp"

namespace tandem::testing {

class MemoryGroup {
 public:
  explicit MemoryGroup(int ranks) : ranks_(ranks) {}

  // Calls `all` with every rank's `own` once all have come, and returns when it has been called.
  void meet(int rank, const void* own, const std::function<void(const std::vector<const void*>&)>& all) {
    std::unique_lock lock(mutex_);
    const std::int64_t round = round_;
    if (given_.empty()) given_.resize(static_cast<std::size_t>(ranks_), nullptr);
    given_[static_cast<std::size_t>(rank)] = own;
    if (++come_ == ranks_) {
      come_ = left_ = 0;
      ++round_;
      news_.notify_all();
    } else {
      news_.wait(lock, [&] { return round_ != round || lost_; });
    }
    if (round_ == round)
      throw DeviceError("rank " + std::to_string(rank) + " of " + std::to_string(ranks_) +
                        ": a collective failed, so a peer has stopped or cannot be reached");
    all(given_);  // under the lock: one rank after the other, all before any goes on and writes what it gave
    const std::int64_t passed = round_;
    if (++left_ == ranks_) {
      ++passed_;
      news_.notify_all();
    } else {
      news_.wait(lock, [&] { return passed_ >= passed; });
    }
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    news_.notify_all();
  }
  int ranks() const { return ranks_; }

  // Returns once the other has come, or throws where it never will.
  void send(int from, int to, std::int32_t tag, const std::byte* data, std::int64_t bytes) {
    std::unique_lock lock(mutex_);
    const Pair pair{from, to, tag};
    on_the_way_[pair].assign(data, data + bytes);
    news_.notify_all();
    wait(lock, from, [&] { return !on_the_way_.contains(pair); });
  }
  void receive(int from, int to, std::int32_t tag, std::byte* data, std::int64_t bytes) {
    std::unique_lock lock(mutex_);
    const Pair pair{from, to, tag};
    wait(lock, to, [&] { return on_the_way_.contains(pair); });
    CHECK(static_cast<std::int64_t>(on_the_way_[pair].size()) == bytes, from, to, tag, bytes);
    std::memcpy(data, on_the_way_[pair].data(), static_cast<std::size_t>(bytes));
    on_the_way_.erase(pair);
    news_.notify_all();
  }

 private:
  using Pair = std::tuple<int, int, std::int32_t>;
  template <typename Done>
  void wait(std::unique_lock<std::mutex>& lock, int rank, const Done& done) {
    news_.wait(lock, [&] { return done() || lost_; });
    if (!done())
      throw DeviceError("rank " + std::to_string(rank) + " of " + std::to_string(ranks_) + ": a peer has stopped");
  }

  const int ranks_;
  std::map<Pair, std::vector<std::byte>> on_the_way_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<const void*> given_;
  std::int64_t round_ = 0, passed_ = 0;
  int come_ = 0, left_ = 0;
  bool lost_ = false;
};

// Sums of digests are their sums as words: a reduction that comes late, early or never shows as well.
class MemoryCollective final : public Collective {
 public:
  MemoryCollective(MemoryGroup& group, int rank) : group_(group), rank_(rank) {}
  ~MemoryCollective() override { group_.leave(); }

  void all_reduce_mean(std::int32_t /*group*/, std::byte* data, std::int64_t elements, DType type) override {
    all_reduce_sum(0, data, elements, type);
  }
  void all_reduce_sum(std::int32_t /*group*/, std::byte* data, std::int64_t elements, DType type) override {
    const std::int64_t bytes = elements * size_of(type);
    const std::vector<std::byte> own(data, data + bytes);
    group_.meet(rank_, own.data(), [&](const std::vector<const void*>& parts) {
      for (std::int64_t at = 0; at < bytes; at += static_cast<std::int64_t>(kWord)) {
        std::uint64_t word = 0;
        for (const void* each : parts) word += word_at(static_cast<const std::byte*>(each), at, bytes);
        put_word(data, at, bytes, word);
      }
    });
  }
  void reduce_scatter_mean(std::int32_t group, const std::byte* whole, std::byte* part, std::int64_t elements,
                           DType type) override {
    reduce_scatter_sum(group, whole, part, elements, type);
  }
  void reduce_scatter_sum(std::int32_t /*group*/, const std::byte* whole, std::byte* part, std::int64_t elements,
                          DType type) override {
    std::vector<std::byte> all(whole, whole + elements * size_of(type) * group_.ranks());
    all_reduce_sum(0, all.data(), elements * group_.ranks(), type);
    const std::int64_t bytes = elements * size_of(type);
    std::memcpy(part, all.data() + bytes * rank_, static_cast<std::size_t>(bytes));
  }
  void all_gather(std::int32_t /*group*/, const std::byte* part, std::byte* whole, std::int64_t bytes) override {
    const std::vector<std::byte> own(part, part + bytes);
    group_.meet(rank_, own.data(), [&](const std::vector<const void*>& parts) {
      for (std::size_t r = 0; r < parts.size(); ++r)
        std::memcpy(whole + static_cast<std::int64_t>(r) * bytes, parts[r], static_cast<std::size_t>(bytes));
    });
  }
  void exchange_parts(std::int32_t /*group*/, const std::byte* from, std::byte* to, std::int64_t bytes) override {
    const std::vector<std::byte> own(from, from + bytes * group_.ranks());
    group_.meet(rank_, own.data(), [&](const std::vector<const void*>& parts) {
      for (std::size_t r = 0; r < parts.size(); ++r)
        std::memcpy(to + static_cast<std::int64_t>(r) * bytes, static_cast<const std::byte*>(parts[r]) + rank_ * bytes,
                    static_cast<std::size_t>(bytes));
    });
  }
  void shift(std::int32_t /*group*/, const std::byte* from, std::byte* to, std::int64_t bytes, bool back) override {
    const std::vector<std::byte> own(from, from + bytes);
    const int ranks = static_cast<int>(group_.ranks()), source = (rank_ + (back ? 1 : ranks - 1)) % ranks;
    group_.meet(rank_, own.data(), [&](const std::vector<const void*>& parts) {
      std::memcpy(to, parts[static_cast<std::size_t>(source)], static_cast<std::size_t>(bytes));
    });
  }
  void send(const std::byte* data, std::int64_t bytes, Rank to, std::int32_t tag) override {
    group_.send(rank_, to, tag, data, bytes);
  }
  void receive(std::byte* data, std::int64_t bytes, Rank from, std::int32_t tag) override {
    group_.receive(from, rank_, tag, data, bytes);
  }

 private:
  MemoryGroup& group_;
  const int rank_;
};

class FaultyCollective final : public Collective {
 public:
  FaultyCollective(std::shared_ptr<Collective> collective, Faults& faults)
      : collective_(std::move(collective)), faults_(faults) {}

  void all_reduce_mean(std::int32_t group, std::byte* data, std::int64_t elements, DType type) override {
    faults_.pass(Site::Collective);
    collective_->all_reduce_mean(group, data, elements, type);
  }
  void all_reduce_sum(std::int32_t group, std::byte* data, std::int64_t elements, DType type) override {
    faults_.pass(Site::Collective);
    collective_->all_reduce_sum(group, data, elements, type);
  }
  void reduce_scatter_sum(std::int32_t group, const std::byte* whole, std::byte* part, std::int64_t elements,
                          DType type) override {
    faults_.pass(Site::Collective);
    collective_->reduce_scatter_sum(group, whole, part, elements, type);
  }
  void reduce_scatter_mean(std::int32_t group, const std::byte* whole, std::byte* part, std::int64_t elements,
                           DType type) override {
    faults_.pass(Site::Collective);
    collective_->reduce_scatter_mean(group, whole, part, elements, type);
  }
  void all_gather(std::int32_t group, const std::byte* part, std::byte* whole, std::int64_t bytes) override {
    faults_.pass(Site::Collective);
    collective_->all_gather(group, part, whole, bytes);
  }
  void exchange_parts(std::int32_t group, const std::byte* from, std::byte* to, std::int64_t bytes) override {
    faults_.pass(Site::Collective);
    collective_->exchange_parts(group, from, to, bytes);
  }
  void shift(std::int32_t group, const std::byte* from, std::byte* to, std::int64_t bytes, bool back) override {
    faults_.pass(Site::Collective);
    collective_->shift(group, from, to, bytes, back);
  }
  void send(const std::byte* data, std::int64_t bytes, Rank to, std::int32_t tag) override {
    faults_.pass(Site::Collective);
    collective_->send(data, bytes, to, tag);
  }
  void receive(std::byte* data, std::int64_t bytes, Rank from, std::int32_t tag) override {
    faults_.pass(Site::Collective);
    collective_->receive(data, bytes, from, tag);
  }

 private:
  std::shared_ptr<Collective> collective_;
  Faults& faults_;
};

}  // namespace tandem::testing
