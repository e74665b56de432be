// ZeRO-Infinity (Rajbhandari et al., SC 2021): model states live on the host or on disk. While a layer
// computes, the parameters of the next layers come to the device and those of the layers after them from disk to the
// host (section 6.2, overlap-centric design); a layer's device copy is dropped once it is passed. Gradients leave as
// they come. The update follows the backward, on the CPU: the states of one bucket are read from disk while another's
// are updated and a third's written back (section 5.2.2); the next forward starts when the last update is done.
//
// A chunk of states is a bucket, a layer's tensors, where the paper's have a fixed number of elements. Gradients of
// several micro-batches are summed on the device, and leave with the last. Checkpointed activations leave where the
// device has no room for them, the longest unused first. The paper's partition of each parameter over several devices'
// links is the workload's; its tiling of large operators is not here. `variant: deepspeed` widens gradients to fp32 on
// the device before they leave, as its product does (DeepSpeed 0.13, runtime/zero/stage3.py). `gradient_copies:
// blocking` has nothing compute while gradients leave, as there, too: 0.5 waits for the whole device before each module
// computes (runtime/zero/partition_parameters.py, _allgather_param, _allgather_params_coalesced), and from 0.7 on
// the thread that launches kernels waits for the copies (stage3.py, partition_grads, until pull request 8207).
#include <algorithm>
#include <memory>

#include "core/base/check.hpp"
#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/gradients.hpp"
#include "core/policies/common/layer_stream.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/staged_updates.hpp"
#include "core/policies/common/state_homes.hpp"
#include "core/policies/common/trial.hpp"
#include "core/transforms/fp32_gradients.hpp"
#include "core/transforms/stream_parameters.hpp"

namespace tandem {

class ZeroInfinity final : public Policy {
 public:
  explicit ZeroInfinity(const Scenario& scenario)
      : named_{.parameters = home_option(scenario, "parameters", {"auto", "device", "host", "disk"}),
               .gradients = home_option(scenario, "gradients", {"auto", "device", "host", "disk"}),
               .states = home_option(scenario, "optimizer_states", {"auto", "host", "disk"})},
        choice_(named_),
        as_deepspeed_(choice_option(scenario, "variant", {"paper", "deepspeed"}) == "deepspeed"),
        blocking_(choice_option(scenario, "gradient_copies", {"async", "blocking"}) == "blocking"),
        stream_(int_or_auto_option(scenario, "prefetch", 0, kMost)),
        buffers_(int_option(scenario, "buffers", 1, kMost, kUpdateStages)),
        activations_(scenario) {}
  // With homes to be tried.
  ZeroInfinity(const Scenario& scenario, const HomeChoice& choice) : ZeroInfinity(scenario) {
    choice_ = choice;
    tries_ = false;
  }

  PolicyTraits traits() const override {
    std::vector<Binding> bindings = bindings_of(named_);
    for (const Binding& binding : activations_.bindings()) bindings.push_back(binding);
    Rewrites rewrites = activations_.rewrites();
    if (as_deepspeed_) rewrites.push_back(fp32_gradients());
    if (named_.parameters != "device") rewrites.push_back(stream_parameters());
    return {.rewrites = std::move(rewrites), .bindings = std::move(bindings)};
  }

  Tier home(const View& view, TensorId tensor) override {
    begin(view);
    return homes_.of(tensor);
  }

  void decide(const View& view, Decisions& decisions) override {
    CHECK(begun_, "homes are asked for before anything runs");
    buckets_.follow(view.graph());
    stream_.follow(view, decisions, homes_);
    bool progress = true;
    while (progress) {
      leaving_.move(view, decisions, buckets_, [&](const Bucket&) { return choice_.gradients == "device"; });
      progress = updates_.move(view, decisions, buckets_, homes_);
      // The host copy was only a staging buffer, unless the next update reads it. Decoding updates nothing.
      const std::vector<Bucket>& of_step = buckets_.latest();
      progress |= updates_.upload(view, decisions, /*staged=*/of_step.empty() || !of_step.front().reads_parameter);
      if (updates_.may_compute(view))
        progress |= stream_.advance(view, decisions, homes_, activations_, !blocking_ || !leaving_.on_the_way(view));
    }
  }

 private:
  static constexpr std::int64_t kMost = 100000;

  // Chooses what is left open, once the first step is known. What is needed most often has the host first. Free stay
  // the buffers of updates, and room for activations. Estimates that do not leave all on the host with room to spare
  // are tried, and other homes after them.
  void begin(const View& view) {
    if (begun_) return;
    begun_ = true;
    buckets_.follow(view.graph());
    const auto& of_step = buckets_.first();
    homes_ = homes_by_estimate(view, of_step);
    if (tries_ && !homes_.roomy()) {
      choice_ = fitting_choice(choice_, view.capacity_bytes(Tier::Disk) > 0, [&](const HomeChoice& choice) {
        return fits_in_trial(view.scenario(), std::make_unique<ZeroInfinity>(view.scenario(), choice));
      });
      homes_ = homes_by_estimate(view, of_step);
    }
    leaving_ = LeavingGradients(homes_.of_gradients());
    stream_.begin(view, of_step, homes_);
    updates_.begin(buffers_, /*alternates=*/false);
  }

  StateHomes homes_by_estimate(const View& view, const std::vector<Bucket>& of_step) const {
    const std::int64_t room = view.capacity_bytes(Tier::HostPinned) -
                              std::min(buffers_, kUpdateStages) * widest_update(view.graph(), of_step) -
                              activations_beside_device(view);
    return StateHomes(view, of_step, choice_, room);
  }

  HomeChoice named_, choice_;
  bool tries_ = true;
  bool as_deepspeed_, blocking_;
  bool begun_ = false;
  StateHomes homes_;
  LayerStream stream_;
  std::int64_t buffers_;
  Activations activations_;
  Buckets buckets_;
  LeavingGradients leaving_;
  StagedUpdates updates_;
};

}  // namespace tandem

TANDEM_POLICY(zero_infinity, ZeroInfinity, "ZeRO-Infinity: states on the host or disk, streamed to where they are used",
              "parameters", "gradients", "optimizer_states", "variant", "gradient_copies", "prefetch", "buffers",
              "offload_blocks", "recompute_blocks")
