// SSDTrain (Wu et al., DAC 2025, arXiv 2408.10013; first named TBA): parameters, gradients and optimizer states stay on
// the device, as in plain training. What blocks save for their backward goes to the disk as soon as the forward has
// done with it, and returns ahead of its backward; the last blocks keep theirs (the sections on the tensor cache and
// adaptive offloading). What is still on its way when its backward comes near is taken from where it is, and not
// written if its turn has not come (data forwarding); parameters, and what several ops share, are never sent twice
// (deduplication). How many blocks' leave follows from the rates of the disk and of computing.
//
// The paper's copies go from the GPU to the disk directly (GPUDirect Storage); here they pass through the host, which
// holds a few blocks' at a time. Its unit is a tensor of a module, here of a block.
#include <memory>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/policies/common/activations.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/step_memory.hpp"
#include "core/policies/common/trial.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {

class SsdTrain final : public Policy {
 public:
  explicit SsdTrain(const Scenario& scenario) : SsdTrain(scenario, tier_of(scenario)) {
    if (text_option(scenario, "tier") != "host") return;
    for (const Binding& binding : bind_all(Tier::HostPinned, "tier", "host")) bindings_.push_back(binding);
  }
  // With a tier to be tried.
  SsdTrain(const Scenario& scenario, Tier tier)
      : activations_(scenario, destination(scenario, tier)), bindings_(activations_.bindings()) {}

  PolicyTraits traits() const override { return {.rewrites = activations_.rewrites(), .bindings = bindings_}; }
  Tier home(const View&, TensorId) override { return Tier::Device; }

  void decide(const View& view, Decisions& decisions) override {
    activations_.move(view, decisions);
    while (view.computing() < kAhead)
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

  static Destination destination(const Scenario& scenario, Tier tier) {
    constexpr std::int64_t kMostBuffers = 100000;
    return {.tier = tier, .buffers = int_option(scenario, "buffers", 1, kMostBuffers, Destination{}.buffers)};
  }

  // Where a machine has no disk, or one that cannot take what leaves, the host, unless the disk is asked for.
  static Tier tier_of(const Scenario& scenario) {
    const std::string tier = choice_option(scenario, "tier", {"auto", "disk", "host"});
    const std::int64_t disk_bytes = tier_capacity_bytes(scenario, Tier::Disk);
    if (tier == "disk" && disk_bytes == 0)
      throw ConfigError("policy.tier: the machine has no disk; allowed: auto, host");
    if (tier == "host" || disk_bytes == 0) return Tier::HostPinned;
    if (tier == "disk" || disk_bytes >= kSteps * most_away(scenario)) return Tier::Disk;
    return fits_in_trial(scenario, std::make_unique<SsdTrain>(scenario, Tier::Disk)) ? Tier::Disk : Tier::HostPinned;
  }

  // While one step's activations are still there, the next one's come.
  static constexpr std::int64_t kSteps = 2;
  static std::int64_t most_away(const Scenario& scenario) {
    const Graph graph = first_step(scenario, BlockActivations{});
    std::int64_t bytes = 0;
    for (OpId id = graph.era().first_op; id < graph.op_count(); ++id)
      if (const Op& op = graph.op(id); op.phase == Phase::Backward && op.micro_batch == 0)
        for (ValueId value : saved_for(graph, op)) bytes += graph.value(value).bytes;
    return bytes;
  }

  Activations activations_;
  std::vector<Binding> bindings_;
};

}  // namespace tandem

TANDEM_POLICY(ssdtrain, SsdTrain, "SSDTrain: activations to the disk and back, all else on the device", "tier",
              "buffers", "offload_blocks", "recompute_blocks")
