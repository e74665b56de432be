// Every bucket's optimizer step is divided: the first part of its elements is updated on the device, whose part of the
// optimizer states stays there, and the rest on the CPU at the same time. (DeepSpeed's Twin-Flow divides by sub-groups
// of whole tensors; here each tensor is divided, so that a share of 0.3 means 0.3 of every bucket.)
#include <algorithm>

#include "core/base/check.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"

namespace tandem {

class SplitUpdate final : public Policy {
 public:
  explicit SplitUpdate(const Scenario& scenario)
      : device_percent_(int_option(scenario, "device_percent", 0, 100, 50)) {}

  void decide(const View& view, Decisions& decisions) override {
    prefetch_parameters(view, decisions, kPrefetchedOps);
    for (;;) {
      while (!view.ready_optimizer_ops().empty()) update(view, decisions, view.ready_optimizer_ops().front());
      if (!feed_compute(view, decisions, [](OpId) {}) || view.ready_optimizer_ops().empty()) return;
    }
  }

 private:
  static constexpr std::size_t kPrefetchedOps = 2;

  void update(const View& view, Decisions& decisions, OpId op) const {
    const std::int64_t bytes = view.graph().value(view.graph().op(op).writes.front().value).bytes;
    std::int64_t on_device = device_percent_ == 100 ? bytes : bytes / 100 * device_percent_ / kPageBytes * kPageBytes;
    if (!view.graph().op(op).divisible) on_device = device_percent_ < 50 ? 0 : bytes;
    CHECK(on_device >= 0 && on_device <= bytes, on_device, bytes);
    if (on_device > 0) decisions.run_part(op, 0, on_device, Engine::Compute);
    if (on_device < bytes) decisions.run_part(op, on_device, bytes - on_device, Engine::CpuOptimizer);
    CHECK(view.issued(op), "two parts make less than all of it:", view.graph().op_name(op), on_device, bytes);
  }

  std::int64_t device_percent_;
};

}  // namespace tandem

TANDEM_POLICY(split_update, SplitUpdate, "Each bucket's update in two parts: device and CPU at the same time",
              "device_percent")
