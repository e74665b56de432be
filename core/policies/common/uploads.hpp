// Parameters that the CPU has updated, on their way to the device. A copy is queued when its update is done, not
// before: a lane is FIFO, and what else goes up must not wait behind it. A part of policies; must not know which one.
#pragma once

#include <algorithm>
#include <vector>

#include "core/base/check.hpp"
#include "core/scheduler/policy.hpp"

namespace tandem {

class ParameterUploads {
 public:
  void add(ValueId parameter) {
    CHECK(parameter != kNone && (waiting_.empty() || waiting_.back() != parameter), "goes up twice:", parameter);
    waiting_.push_back(parameter);
  }
  bool empty() const { return waiting_.empty(); }
  bool all_updated(const View& view) const {
    return std::all_of(waiting_.begin(), waiting_.end(), [&](ValueId value) { return updated(view, value); });
  }

  // Sends those that are updated, in order; true if any was. Where there is no room, they wait for it, or are left to
  // demand fetches. `staged`: the copy in host memory is dropped then.
  bool send(const View& view, Decisions& decisions, bool wait_for_room, bool staged) {
    // Where demand fetches came first, the first may wait for ever, and all behind it.
    if (waiting_.size() >= kMost) std::erase_if(waiting_, [&](ValueId value) { return view.over(value); });
    auto next = waiting_.begin();
    for (; next != waiting_.end() && updated(view, *next); ++next) {
      if (view.graph().tensor_of(*next).on_host) continue;
      const Reply reply = decisions.copy(*next, Tier::Device);
      if (reply == Reply::NoRoom && wait_for_room) break;
      if (reply == Reply::Issued && staged) decisions.release(*next, Tier::HostPinned);
    }
    const bool sent = next != waiting_.begin();
    waiting_.erase(waiting_.begin(), next);
    return sent;
  }

 private:
  static constexpr std::size_t kMost = 4096;

  // Where the host's memory is full, an update may already have left for the disk.
  static bool updated(const View& view, ValueId parameter) {
    return view.arrived(parameter, Tier::HostPinned) || view.arrived(parameter, Tier::Disk);
  }

  std::vector<ValueId> waiting_;
};

}  // namespace tandem
