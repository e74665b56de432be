// MLP-Offload (Maurya et al., SC 2025, arXiv 2509.02480), on one device: ZeRO-Infinity with optimizer states on disk,
// moved less. Every other step updates buckets from the last to the first, so that the states which are still on the
// host at the end of one update phase are the first that the next one needs: they are neither written nor read in
// between (cache-friendly ordering of subgroups). Gradients stay on the host in 16 bits until the update of their
// bucket, which widens them, and never see the disk (delayed in-place conversion). Parameters stay on the device, as
// ZeRO-3 keeps them, if they fit there.
//
// Its third tier is the drive of the node and a parallel file system at once, subgroups divided by their bandwidths:
// here one disk of both bandwidths together. A subgroup is a bucket, a layer's tensors, where the paper's have a fixed
// number of elements. With one process there is no contention of processes for a path to control.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "core/base/check.hpp"
#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/gradients.hpp"
#include "core/policies/common/layer_stream.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/staged_updates.hpp"
#include "core/policies/common/state_homes.hpp"
#include "core/policies/common/trial.hpp"
#include "core/transforms/stream_parameters.hpp"

namespace tandem {

class MlpOffload final : public Policy {
 public:
  explicit MlpOffload(const Scenario& scenario)
      : named_{.parameters = home_option(scenario, "parameters", {"auto", "device", "host", "disk"}),
               .gradients = "host",
               .states = home_option(scenario, "optimizer_states", {"auto", "host", "disk"})},
        choice_(named_),
        buffers_(int_or_auto_option(scenario, "buffers", 1, kMost)),
        stream_(int_or_auto_option(scenario, "prefetch", 0, kMost)),
        activations_(scenario) {
    streams_ = choice_.parameters != "device" &&
               (choice_.parameters != "auto" || !parameters_fit_on_device(scenario, activations_.choice()));
    if (choice_.parameters == "auto" && !streams_) choice_.parameters = "device";
  }
  // With homes to be tried.
  MlpOffload(const Scenario& scenario, const HomeChoice& choice) : MlpOffload(scenario) {
    choice_ = choice;
    tries_ = false;
  }

  PolicyTraits traits() const override {
    // That gradients are on the host is the paper's choice and no option: they are bound where all that is named is.
    HomeChoice bound = named_;
    const bool off_disk = (bound.parameters == "device" || bound.parameters == "host") && bound.states == "host";
    if (!off_disk) bound.gradients = "auto";
    std::vector<Binding> bindings = bindings_of(bound);
    for (Binding& binding : bindings)
      if (binding.role == Role::Gradient) binding.option.clear();
    for (const Binding& binding : activations_.bindings()) bindings.push_back(binding);
    Rewrites rewrites = activations_.rewrites();
    if (streams_) rewrites.push_back(stream_parameters());
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
      leaving_.move(view, decisions, buckets_, [](const Bucket&) { return false; });
      progress = updates_.move(view, decisions, buckets_, homes_);
      progress |= updates_.upload(view, decisions, /*staged=*/true);
      if (updates_.may_compute(view)) progress |= stream_.advance(view, decisions, homes_, activations_);
    }
  }

 private:
  static constexpr std::int64_t kMost = 100000;

  void begin(const View& view) {
    if (begun_) return;
    begun_ = true;
    buckets_.follow(view.graph());
    if (!choose_homes(view) && tries_) {
      const HomeChoice estimated = choice_;
      const auto fits = [&](const HomeChoice& choice) {
        return fits_in_trial(view.scenario(), std::make_unique<MlpOffload>(view.scenario(), choice));
      };
      choice_ = fits(estimated) ? estimated : fitting_choice(named_, view.capacity_bytes(Tier::Disk) > 0, fits);
      choose_homes(view);
    }
    stream_.begin(view, buckets_.first(), homes_);
    updates_.begin(buffers_.value_or(kUpdateStages + more_buffers(view)), /*alternates=*/true);
  }

  // States that do not all fit on the host all live on disk: those that do fit are on the host in turn. True if all
  // that is left open is on the host with room to spare.
  bool choose_homes(const View& view) {
    const auto& of_step = buckets_.first();
    const std::int64_t room = view.capacity_bytes(Tier::HostPinned) - activations_beside_device(view) -
                              kUpdateStages * widest_update(view.graph(), of_step);
    homes_ = StateHomes(view, of_step, choice_, room);
    if (homes_.roomy()) return true;
    if (choice_.states != "auto" || !homes_.on_disk(view.graph(), Role::OptimizerState)) return false;
    HomeChoice all_on_disk = choice_;
    all_on_disk.states = "disk";
    homes_ = StateHomes(view, of_step, all_on_disk, room);
    return false;
  }

  // Beside those that keep reading, updating and writing busy.
  std::int64_t more_buffers(const View& view) const {
    const std::int64_t bytes = widest_update(view.graph(), buckets_.first());
    return bytes > 0 ? std::max(std::int64_t{0}, homes_.room_bytes()) / bytes : 0;  // 0: nothing is updated
  }

  HomeChoice named_, choice_;
  bool tries_ = true;
  std::optional<std::int64_t> buffers_;
  bool streams_ = false;
  bool begun_ = false;
  StateHomes homes_;
  LayerStream stream_;
  Activations activations_;
  Buckets buckets_;
  LeavingGradients leaving_;
  StagedUpdates updates_;
};

}  // namespace tandem

TANDEM_POLICY(mlp_offload, MlpOffload,
              "MLP-Offload: states on disk, updated in alternating order so that the host keeps some", "parameters",
              "optimizer_states", "prefetch", "buffers", "offload_blocks", "recompute_blocks")
