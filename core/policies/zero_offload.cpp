// ZeRO-Offload (Ren et al., USENIX ATC 2021, sections 3 to 5): forward and backward on the device; gradients go to the
// host as they come; once the backward is over, Adam runs on the CPU bucket by bucket, and each bucket's new parameters
// travel back while the next is updated. The next forward starts when all have arrived. With `delayed_update`
// (section 5.2, one-step delayed parameter update) the CPU updates under the next step's forward and backward instead.
//
// `variant: deepspeed` is what its product does instead (DeepSpeed 0.19, runtime/zero/stage_1_and_2.py): gradients are
// widened to fp32 on the device and travel so, Adam starts when the last one is on the host, and parameters travel back
// when the last one is updated. `gradient_copies: blocking` has nothing compute while gradients leave: 0.5 copies on
// the stream that computes, and its thread looks at each gradient for infinities before the next kernel
// (runtime/zero/stage2.py, reduce_ipg_grads and update_overflow_tracker_for_param_grad).
#include <algorithm>
#include <array>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/gradients.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/uploads.hpp"
#include "core/transforms/delayed_update.hpp"
#include "core/transforms/fp32_gradients.hpp"

namespace tandem {

class ZeroOffload final : public Policy {
 public:
  explicit ZeroOffload(const Scenario& scenario)
      : delayed_(bool_option(scenario, "delayed_update", false)),
        as_deepspeed_(choice_option(scenario, "variant", {"paper", "deepspeed"}) == "deepspeed"),
        blocking_(choice_option(scenario, "gradient_copies", {"async", "blocking"}) == "blocking"),
        on_device_(choice_option(scenario, "parameters", {"auto", "device"}) == "device"),
        activations_(scenario) {
    if (delayed_ && as_deepspeed_)
      throw ConfigError("policy.delayed_update: variant deepspeed has no delayed update; allowed: false");
  }

  PolicyTraits traits() const override {
    Rewrites rewrites = activations_.rewrites();
    if (delayed_) rewrites.push_back(delayed_update());
    if (as_deepspeed_) rewrites.push_back(fp32_gradients());
    return {.may_evict = !on_device_, .rewrites = std::move(rewrites), .bindings = activations_.bindings()};
  }

  // 16-bit parameters live on the device, master parameters and moments on the host (section 4.1). With FP32 the
  // parameter is its own master: the host keeps it and the device holds a copy. With BF16 it is the upper half of it:
  // the host keeps a copy, too, once the first update has read it. Parameters that do not all fit beside the widest op
  // stay on the host and are fetched, so that a model beyond the paper's limit still trains, unless `parameters:
  // device` asks for that limit: then what does not fit beside them ends the run.
  Tier home(const View& view, TensorId tensor) override { return parameters_.home(view, tensor); }

  void decide(const View& view, Decisions& decisions) override {
    buckets_.follow(view.graph());
    bool progress = true;
    while (progress) {
      progress = compute(view, decisions);
      send_gradients(view, decisions);
      if (backward_issued(view)) progress |= update(view, decisions);
      progress |= upload_parameters(view, decisions);
    }
  }

 private:
  static constexpr std::array kTiers = {Tier::Device, Tier::HostPinned, Tier::Disk};

  void send_gradients(const View& view, Decisions& decisions) {
    gradients_.move(view, decisions, buckets_, [](const Bucket&) { return false; });
  }

  bool compute(const View& view, Decisions& decisions) {
    bool any = false;
    const auto may_run = [&] {
      if (waits_for_parameters(view)) return false;
      if (!blocking_) return true;
      send_gradients(view, decisions);
      return !gradients_.on_the_way(view);
    };
    feed_compute(view, decisions, may_run, [&](OpId op) {
      drop_gathered(view, decisions, op);
      activations_.move(view, decisions);
      any = true;
    });
    return any;
  }

  // The blocking optimizer step: no forward of the next step until the last parameters of this one are back (on the
  // device, or, where the device cannot hold them all, in host memory or, if that is full, on disk for demand fetches).
  bool waits_for_parameters(const View& view) {
    const auto program = view.compute_program();
    if (delayed_ || program.empty()) return false;
    if (!uploads_.empty()) return !step_goes_on(view, updated_step_);
    const std::int32_t step = view.graph().op(program.front()).step;
    if (step != arriving_) {
      CHECK(step > arriving_, "steps come in order", step, arriving_);
      arriving_ = step;
      arrived_ = 0;
    }
    for (const auto& buckets = buckets_.step(step - 1); arrived_ < buckets.size(); ++arrived_) {
      const ValueId parameter = buckets[arrived_].parameter;
      if (view.over(parameter)) continue;
      const auto highest =
          std::find_if(kTiers.begin(), kTiers.end(), [&](Tier tier) { return view.valid(parameter, tier); });
      if (highest == kTiers.end() || !view.arrived(parameter, *highest)) return true;
    }
    return false;
  }

  // All gradients of the step to be updated next are on their way.
  bool backward_issued(const View& view) const {
    return !view.ready_optimizer_ops().empty() &&
           gradients_.have_left(view.graph().op(view.ready_optimizer_ops().front()).step);
  }

  bool update(const View& view, Decisions& decisions) {
    const std::int32_t step = view.graph().op(view.ready_optimizer_ops().front()).step;
    if (as_deepspeed_ && !gradients_arrived(view, step)) return false;
    bool issued = false;
    for (const Bucket& bucket : buckets_.step(step)) {
      if (view.issued(bucket.optimizer)) continue;
      if (decisions.run(bucket.optimizer, Engine::CpuOptimizer) != Reply::Issued) break;
      uploads_.add(bucket.parameter);
      updated_step_ = step;
      issued = true;
    }
    return issued;
  }

  bool gradients_arrived(const View& view, std::int32_t step) const {
    const auto& buckets = buckets_.step(step);
    return std::all_of(buckets.begin(), buckets.end(),
                       [&](const Bucket& bucket) { return gradient_has_left(view, bucket); });
  }

  bool upload_parameters(const View& view, Decisions& decisions) {
    if (uploads_.empty() || (as_deepspeed_ && !uploads_.all_updated(view))) return false;
    // Where parameters live on the device, the host copy was only a staging buffer, unless the next update reads it.
    // Without room after a blocking update there will be none before the next step: those are fetched on demand.
    const bool staged = parameters_.fit() && !buckets_.latest().front().reads_parameter;
    return uploads_.send(view, decisions, /*wait_for_room=*/delayed_, staged);
  }

  bool delayed_, as_deepspeed_, blocking_, on_device_;
  Activations activations_;
  DeviceParameters parameters_;
  Buckets buckets_;
  LeavingGradients gradients_;
  std::int32_t arriving_ = 0;  // step whose forward waits for parameters
  std::size_t arrived_ = 0;    // of the buckets of the step before, from the first
  ParameterUploads uploads_;
  std::int32_t updated_step_ = kNone;  // whose parameters they are
};

}  // namespace tandem

TANDEM_POLICY(zero_offload, ZeroOffload, "ZeRO-Offload: gradients to the host, Adam on the CPU, parameters back",
              "delayed_update", "variant", "gradient_copies", "parameters", "offload_blocks", "recompute_blocks")
