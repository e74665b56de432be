#include "core/policies/common/staged_updates.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// Its update is done, and what was sent to the disk is there.
bool settled(const View& view, const Bucket& bucket) {
  const auto& writes = view.graph().op(bucket.optimizer).writes;
  return view.finished(bucket.optimizer) && std::all_of(writes.begin(), writes.end(), [&](const Write& write) {
           return !view.valid(write.value, Tier::Disk) || view.arrived(write.value, Tier::Disk);
         });
}

bool all_settled(const View& view, const std::vector<Bucket>& buckets) {
  return std::all_of(buckets.begin(), buckets.end(), [&](const Bucket& bucket) { return settled(view, bucket); });
}

void leave(const View& view, Decisions& decisions, const StateHomes& homes, const Bucket& bucket, bool states_stay) {
  for (const Write& write : view.graph().op(bucket.optimizer).writes)
    if (!states_stay || view.graph().tensor_of(write.value).role != Role::OptimizerState)
      homes.leave_host(view, decisions, write.value);
}

}  // namespace

bool StagedUpdates::enter(const View& view, const Buckets& buckets) {
  if (step_ != kNone) return true;
  if (view.ready_optimizer_ops().empty()) return false;
  const std::int32_t step = view.graph().op(view.ready_optimizer_ops().front()).step;
  CHECK(!buckets.step(step).empty() && under_way_.empty(), "a phase begins before the last has ended", step);
  if (!view.issuable(buckets.step(step).front().optimizer)) return false;
  kept_ = std::ssize(staying_);
  staying_.clear();
  step_ = step, issued_ = 0;
  return true;
}

const Bucket& StagedUpdates::next(const std::vector<Bucket>& of_step) const {
  CHECK(issued_ >= 0 && issued_ < std::ssize(of_step), issued_, of_step.size());
  const bool backwards = alternates_ && step_ % 2 == 1;
  return of_step[static_cast<std::size_t>(backwards ? std::ssize(of_step) - 1 - issued_ : issued_)];
}

// What stayed has its own.
bool StagedUpdates::has_buffer() const {
  const std::int64_t kept = std::max(std::int64_t{0}, kept_ - issued_);
  return kept > 0 || std::ssize(under_way_) + std::ssize(staying_) < buffers_;
}

bool StagedUpdates::move(const View& view, Decisions& decisions, const Buckets& buckets, const StateHomes& homes) {
  if (!enter(view, buckets)) return false;
  const auto& of_step = buckets.step(step_);
  std::erase_if(under_way_, [&](const Bucket& bucket) { return settled(view, bucket); });
  bool any = false;
  for (; issued_ < std::ssize(of_step); ++issued_, any = true) {
    const Bucket& bucket = next(of_step);
    if (!has_buffer() || !update(view, decisions, homes, bucket)) return any;
    const bool stays = alternates_ && issued_ >= std::ssize(of_step) - buffers_;
    leave(view, decisions, homes, bucket, stays);
    (stays ? staying_ : under_way_).push_back(bucket);
  }
  if (!under_way_.empty() || !all_settled(view, staying_)) return any;
  CHECK(std::ssize(staying_) <= buffers_, "more states stay than have buffers", staying_.size(), buffers_);
  CHECK(std::all_of(of_step.begin(), of_step.end(), [&](const Bucket& b) { return view.issued(b.optimizer); }), step_);
  step_ = kNone;
  return true;
}

// All at once: each lane keeps its order, and the next bucket's states come in while these go home.
bool StagedUpdates::update(const View& view, Decisions& decisions, const StateHomes& homes, const Bucket& bucket) {
  for (ValueId read : view.graph().op(bucket.optimizer).reads)
    if (decisions.copy(read, Tier::HostPinned) == Reply::NoRoom &&
        (!under_way_.empty() || !all_settled(view, staying_)))
      return false;
  if (decisions.run(bucket.optimizer, Engine::CpuOptimizer) != Reply::Issued) return false;
  if (homes.lives_on(view, bucket.parameter, Tier::Device)) uploads_.add(bucket.parameter);
  return true;
}

}  // namespace tandem
