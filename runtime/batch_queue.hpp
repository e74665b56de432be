// Batches that whoever calls for a run hands over ahead of need, one a training step, from a thread of his own. Must
// not know who that is, what the tensors mean, or who reads them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/batches.hpp"
#include "runtime/data.hpp"

namespace tandem {

// The caller's memory, which stays as it is until the step is over.
struct GivenTensor {
  const std::byte* bytes = nullptr;  // null: the run has it by itself (a constant)
  std::int64_t count = 0;            // bytes
  bool shared = false;               // by all micro-batches of the step; else they lie one after the other
};
using GivenBatch = std::vector<GivenTensor>;  // by place in the network's batch

class BatchQueue {
 public:
  // The next batch is that of training step `first_step`, counted from the training's start. `wanted` is called on the
  // run's thread, before it waits.
  BatchQueue(std::int32_t first_step, std::function<void()> wanted)
      : first_(first_step), wanted_now_(std::move(wanted)) {}

  // The caller's side: whether one is asked for; the next one; that there are no more.
  bool wants() const;
  void give(GivenBatch batch);
  void end();
  // Of steps that are over, so many since the first: their memory is the caller's again.
  void drop(std::int64_t steps);

  // The run's side: waits until so many batches have been given in all, or there are no more. Returns how many there
  // are. `spare`: that the caller may prepare meanwhile.
  std::int64_t require(std::int64_t batches, std::int64_t spare = 0);
  bool ended() const;
  // As of TensorBatches::read, of one of `micro_batches`.
  void read(BatchKey key, std::size_t index, std::int64_t micro_batches, const BatchPlace& place) const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::int32_t first_;
  std::function<void()> wanted_now_;
  std::int64_t dropped_ = 0, wanted_ = 0;
  bool ended_ = false;
  std::deque<GivenBatch> batches_;  // from `dropped_` on
};

// The queue as what a training reads.
class QueuedData final : public TensorSource {
 public:
  // The queue outlives it.
  QueuedData(const BatchQueue& queue, std::int64_t micro_batches) : queue_(queue), micro_batches_(micro_batches) {}
  void read(BatchKey key, std::size_t index, const BatchPlace& place) const override {
    queue_.read(key, index, micro_batches_, place);
  }
  // What was given is not known: a run that goes on is given what comes next, and one on other data is refused.
  SavedData saved() const override { return {false, "", "given"}; }
  // Never asked: batches are read as tensors.

 private:
  const BatchQueue& queue_;
  std::int64_t micro_batches_;
};

}  // namespace tandem
