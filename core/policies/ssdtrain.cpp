// SSDTrain (Wu et al., DAC 2025, arXiv 2408.10013; first named TBA): parameters, gradients and optimizer states stay on
// the device, as in plain training. What blocks save for their backward goes to the disk as soon as the forward has
// done with it, and returns ahead of its backward; the last blocks keep theirs (the sections on the tensor cache and
// adaptive offloading). What is still on its way when its backward comes near is taken from where it is, and not
// written if its turn has not come (data forwarding); parameters, and what several ops share, are never sent twice
// (deduplication). How many blocks' leave follows from the rates of the disk and of computing.
//
// The paper's copies go from the GPU to the disk directly (GPUDirect Storage); here they pass through the host, which
// holds a few blocks' at a time. Its unit is a tensor of a module, here of a block.
#include "core/base/errors.hpp"
#include "core/policies/common/activations.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {

class SsdTrain final : public Policy {
 public:
  explicit SsdTrain(const Scenario& scenario) : activations_(scenario, destination(scenario)) {}

  PolicyTraits traits() const override { return {.graph = {.activations = activations_.choice()}}; }
  Tier home(const View&, TensorId) override { return Tier::Device; }

  void decide(const View& view, Decisions& decisions) override {
    activations_.move(view, decisions);
    while (view.queued(Engine::Compute) < kAhead)
      if (!advance(view, decisions) && !update(view, decisions)) return;
  }

 private:
  // One op runs and one waits: room is taken when an op is issued, and what leaves is decided then.
  static constexpr int kAhead = 2;

  bool advance(const View& view, Decisions& decisions) {
    activations_.make_room(view, decisions);
    if (view.compute_program().empty() || decisions.run(view.compute_program().front()) != Reply::Issued) return false;
    activations_.move(view, decisions);
    return true;
  }

  // As in plain training: the next forward waits for all of them.
  static bool update(const View& view, Decisions& decisions) {
    return run_ready_updates(view, decisions, Engine::Compute, [](OpId) { return true; });
  }

  // Where a machine has no disk, the host, unless the disk is asked for.
  static Destination destination(const Scenario& scenario) {
    constexpr std::int64_t kMostBuffers = 100000;
    const std::string tier = choice_option(scenario, "tier", {"auto", "disk", "host"});
    const bool no_disk = tier_capacity_bytes(scenario, Tier::Disk) == 0;
    if (tier == "disk" && no_disk) throw ConfigError("policy.tier: the machine has no disk; allowed: auto, host");
    return {.tier = tier == "host" || no_disk ? Tier::HostPinned : Tier::Disk,
            .buffers = int_option(scenario, "buffers", 1, kMostBuffers, Destination{}.buffers)};
  }

  Activations activations_;
};

}  // namespace tandem

TANDEM_POLICY(ssdtrain, SsdTrain, "SSDTrain: activations to the disk and back, all else on the device", "tier",
              "buffers", "offload_blocks", "recompute_blocks")
