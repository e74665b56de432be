// Gradients on their way to the host or, through it, to disk, each once it is final: from the last bucket of a step to
// the first; and updates in the order in which they arrive. A part of policies that update on the CPU; must not know
// which one.
#pragma once

#include <algorithm>
#include <vector>

#include "core/base/check.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/scheduler/policy.hpp"

namespace tandem {

class LeavingGradients {
 public:
  explicit LeavingGradients(Tier to = Tier::HostPinned) : to_(to) {}

  // Sends those that may leave, but for those of buckets that `stays(bucket)` holds on the device.
  template <typename F>
  void move(const View& view, Decisions& decisions, const Buckets& buckets, F&& stays) {
    step_ = std::max(step_, view.graph().era().first_step);
    for (; step_ < buckets.step_count(); ++step_, moved_ = 0) {
      const auto& of_step = buckets.step(step_);
      for (; moved_ < of_step.size(); ++moved_) {
        const Bucket& bucket = of_step[of_step.size() - 1 - moved_];
        CHECK(bucket.step == step_, "a bucket of another step", bucket.step, step_);
        if (!stays(bucket) && !leave(view, decisions, bucket)) return;
      }
    }
  }

  // All of the step's are on their way.
  bool have_left(std::int32_t step) const { return step_ > step; }

  // Copies that were begun have yet to end: where the thread that launches kernels waits for each, nothing computes
  // meanwhile.
  bool on_the_way(const View& view) {
    forget_arrived(view);
    return !leaving_.empty();
  }

 private:
  // One that is gone from there has been used, so it had arrived.
  void forget_arrived(const View& view) {
    std::erase_if(leaving_,
                  [&](ValueId gradient) { return !view.valid(gradient, to_) || view.arrived(gradient, to_); });
  }

  bool leave(const View& view, Decisions& decisions, const Bucket& bucket) {
    if (!gradient_may_leave(view, bucket)) return false;
    if (decisions.copy(bucket.gradient, to_) != Reply::Issued) return false;
    forget_arrived(view);
    leaving_.push_back(bucket.gradient);
    decisions.release(bucket.gradient, Tier::Device);
    if (to_ != Tier::HostPinned) decisions.release(bucket.gradient, Tier::HostPinned);
    return true;
  }

  Tier to_;
  std::int32_t step_ = 0;         // whose gradients are being moved
  std::size_t moved_ = 0;         // of its buckets, from the last
  std::vector<ValueId> leaving_;  // not seen to have arrived
};

// The bucket that the CPU updates next: first come, first served until all gradients of its step are on their way, then
// the lowest layer, which the next forward needs first. Null: there is none whose gradient is there.
inline const Bucket* next_update(const View& view, const Buckets& buckets, const LeavingGradients& gradients) {
  const Bucket* next = nullptr;
  for (OpId op : view.ready_optimizer_ops()) {  // in forward order
    if (!view.graph().op(op).may_run_on(Engine::CpuOptimizer)) continue;
    const Bucket& bucket = buckets.of(view.graph(), op);
    if (!gradient_has_left(view, bucket)) continue;
    if (gradients.have_left(bucket.step)) return &bucket;
    next = &bucket;
  }
  return next;
}

// Runs on the CPU the updates of buckets that `mine(bucket)` holds for, as their gradients arrive: one runs and one
// waits.
template <typename F>
void update_as_they_arrive(const View& view, Decisions& decisions, const Buckets& buckets, F&& mine) {
  while (view.queued(Engine::CpuOptimizer) < 2) {
    const auto ready = view.ready_optimizer_ops();
    const auto next = std::find_if(ready.rbegin(), ready.rend(), [&](OpId op) {
      const Bucket& bucket = buckets.of(view.graph(), op);
      return mine(bucket) && gradient_has_left(view, bucket);
    });
    if (next == ready.rend() || decisions.run(*next, Engine::CpuOptimizer) != Reply::Issued) return;
  }
}

}  // namespace tandem
