#include "runtime/batch_queue.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"

namespace tandem {

bool BatchQueue::wants() const {
  const std::lock_guard lock(mutex_);
  return !ended_ && dropped_ + static_cast<std::int64_t>(batches_.size()) < wanted_;
}

void BatchQueue::give(GivenBatch batch) {
  const std::lock_guard lock(mutex_);
  CHECK(!ended_, "a batch after the last one");
  batches_.push_back(std::move(batch));
  news_.notify_all();
}

void BatchQueue::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  news_.notify_all();
}

void BatchQueue::drop(std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  for (; dropped_ < steps && !batches_.empty(); ++dropped_) batches_.pop_front();
}

std::int64_t BatchQueue::require(std::int64_t batches, std::int64_t spare) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = std::max(wanted_, batches + spare);
  }
  wanted_now_();
  std::unique_lock lock(mutex_);
  const auto given = [&] { return dropped_ + static_cast<std::int64_t>(batches_.size()); };
  news_.wait(lock, [&] { return ended_ || given() >= batches; });
  return given();
}

bool BatchQueue::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void BatchQueue::read(BatchKey key, std::size_t index, std::int64_t micro_batches, const BatchPlace& place) const {
  const std::int64_t wanted = place.elements * size_of(place.type);
  const std::byte* from = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t at = key.step - first_ - dropped_;
    if (at < 0 || at >= static_cast<std::int64_t>(batches_.size()))
      throw DeviceError("no batch was given for training step " + std::to_string(key.step + 1));
    const GivenTensor& tensor = batches_[static_cast<std::size_t>(at)].at(index);
    const std::int64_t parts = tensor.shared ? 1 : micro_batches;
    if (tensor.bytes == nullptr || tensor.count != parts * wanted)
      throw DeviceError("tensor " + std::to_string(index) + " of a batch has " + std::to_string(tensor.count) +
                        " bytes instead of " + std::to_string(parts * wanted));
    from = tensor.bytes + (tensor.shared ? 0 : key.micro_batch * wanted);
  }
  std::memcpy(place.bytes, from, static_cast<std::size_t>(wanted));
}

}  // namespace tandem
