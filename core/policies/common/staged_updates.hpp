// The phase after a backward in which the CPU updates buckets whose states live on disk, or on the host: one's are
// read while another's are updated and a third's written back (ZeRO-Infinity, section 5.2.2). States may also stay on
// the host from the end of one phase to the next (MLP-Offload, cache-friendly subgroup reordering). A part of policies;
// must not know which one.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/check.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/state_homes.hpp"
#include "core/policies/common/uploads.hpp"

namespace tandem {

// Buckets that are read, updated and written at a time keep all three busy.
inline constexpr std::int64_t kUpdateStages = 3;

class StagedUpdates {
 public:
  // `buffers`: buckets whose states are on the host at a time. `alternates`: every other step updates buckets from the
  // last to the first, and the states that are on the host at the end stay there: the next step begins with them.
  void begin(std::int64_t buffers, bool alternates) {
    CHECK(buffers >= 1 && step_ == kNone, buffers, step_);
    buffers_ = buffers, alternates_ = alternates;
  }

  // Issues what it can; true if anything. The phase lasts from when the backward is issued, whose last gradient is the
  // first bucket's, until all updates are done and what leaves the host is at home.
  bool move(const View& view, Decisions& decisions, const Buckets& buckets, const StateHomes& homes);
  bool in_phase() const { return step_ != kNone; }
  // All computing waits for the phase's end, but for what is left of its step.
  bool may_compute(const View& view) const { return !in_phase() || step_goes_on(view, step_); }

  // Updated parameters to the device, if they live there. `staged`: none stays on the host.
  bool upload(const View& view, Decisions& decisions, bool staged) {
    return !uploads_.empty() && uploads_.send(view, decisions, /*wait_for_room=*/false, staged);
  }

 private:
  bool enter(const View& view, const Buckets& buckets);
  const Bucket& next(const std::vector<Bucket>& of_step) const;
  bool has_buffer() const;
  bool update(const View& view, Decisions& decisions, const StateHomes& homes, const Bucket& bucket);

  std::int64_t buffers_ = kUpdateStages;
  bool alternates_ = false;
  std::int32_t step_ = kNone;
  std::int64_t issued_ = 0;        // of its buckets
  std::int64_t kept_ = 0;          // so many of the first have states that stayed on the host
  std::vector<Bucket> under_way_;  // whose states are on the host, or on their way to or from it
  std::vector<Bucket> staying_;    // those that will not leave
  ParameterUploads uploads_;
};

}  // namespace tandem
