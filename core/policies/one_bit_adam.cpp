// 1-bit Adam (Tang et al., ICML 2021, arXiv 2102.02888) with the CPU in place of the other workers: after a warm-up of
// plain Adam its variance is frozen, and a bit of momentum for each parameter leaves the device instead of a gradient
// (core/formats/one_bit.hpp). The CPU updates buckets as they arrive, first come, first served until the
// backward is over, then lowest layer first; each bucket's parameters return in full, and a forward waits for its own
// layer's only.
//
// Homes are those of zero_offload: 16-bit parameters on the device, masters and both moments on the host. From the
// first step after the warm-up on, what the device keeps of its momentum takes 4 bytes a parameter there.
#include "core/base/errors.hpp"
#include "core/formats/one_bit.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/gradients.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/uploads.hpp"
#include "core/transforms/one_bit.hpp"

namespace tandem {

class OneBitAdam final : public Policy {
 public:
  explicit OneBitAdam(const Scenario& scenario) {
    constexpr std::int64_t kMost = 1'000'000'000, kMostBlock = 1 << 20;
    update_.warmup_steps = int_option(scenario, "warmup_steps", 1, kMost, default_warmup_steps(scenario.steps));
    update_.block = int_option(scenario, "block", kSignsPerWord, kMostBlock, kSignBlock);
    update_.error_feedback = bool_option(scenario, "error_feedback", true);
    if (update_.block % kSignsPerWord != 0)
      throw ConfigError("policy.block: '" + text_option(scenario, "block") +
                        "' is not allowed; allowed: a multiple of " + std::to_string(kSignsPerWord));
    if (scenario.workload.precision == DType::F16)
      throw ConfigError("workload.precision: one_bit_adam does not train in fp16; allowed: fp32, bf16");
    if (scenario.optimizer.state_bits != 32)
      throw ConfigError("optimizer.state_bits: one_bit_adam keeps what it has not sent in fp32; allowed: 32");
    require_adam(scenario, "one_bit_adam", "the host does not see");
    if (!scenario.optimizer.masters && scenario.workload.precision != DType::F32)
      throw ConfigError("optimizer.masters: one_bit_adam updates fp32 masters; allowed: true");
  }

  PolicyTraits traits() const override { return {.rewrites = {one_bit(update_)}}; }
  Tier home(const View& view, TensorId tensor) override { return parameters_.home(view, tensor); }

  void decide(const View& view, Decisions& decisions) override {
    buckets_.follow(view.graph());
    bool progress = true;
    while (progress) {
      progress = false;
      gradients_.move(view, decisions, buckets_, [](const Bucket&) { return false; });
      update(view, decisions);
      uploads_.send(view, decisions, /*wait_for_room=*/false, /*staged=*/false);
      feed_compute(view, decisions, [&](OpId) { progress = true; });
    }
  }

 private:
  void update(const View& view, Decisions& decisions) {
    while (view.queued(Engine::CpuOptimizer) < 2) {
      const Bucket* next = next_update(view, buckets_, gradients_);
      if (next == nullptr || decisions.run(next->optimizer, Engine::CpuOptimizer) != Reply::Issued) return;
      uploads_.add(next->parameter);
    }
  }

  OneBitUpdate update_;
  DeviceParameters parameters_;
  Buckets buckets_;
  LeavingGradients gradients_;
  ParameterUploads uploads_;
};

}  // namespace tandem

TANDEM_POLICY(one_bit_adam, OneBitAdam, "1-bit Adam: after a warm-up, signs of the momentum leave instead of gradients",
              "warmup_steps", "block", "error_feedback")
