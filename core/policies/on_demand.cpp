// Unified-memory style: fetch what an op needs when it runs, evict what was least recently used. Everything computes on
// the device unless `optimizer: cpu`. States live in host memory, or on disk where host memory is short.
#include "core/base/check.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"

namespace tandem {

class OnDemand final : public Policy {
 public:
  explicit OnDemand(const Scenario& scenario)
      : home_(choice_option(scenario, "home", {"auto", "host", "disk"})),
        optimizer_(choice_option(scenario, "optimizer", {"device", "cpu"}) == "cpu" ? Engine::CpuOptimizer
                                                                                    : Engine::Compute) {}

  Tier home(const View& view, TensorId tensor) override {
    if (home_ == "host" || view.capacity_bytes(Tier::Disk) == 0) return Tier::HostPinned;
    if (home_ == "disk") return Tier::Disk;
    // Half of the host stays free for activations, gradients and what is on its way to and from the disk.
    const bool roomy = view.free_bytes(Tier::HostPinned) - view.graph().tensor(tensor).bytes >
                       view.capacity_bytes(Tier::HostPinned) / 2;
    return roomy ? Tier::HostPinned : Tier::Disk;
  }

  void decide(const View& view, Decisions& decisions) override {
    while (feed_compute(view, decisions, [](OpId) {})) {
      if (view.ready_optimizer_ops().empty()) return;
      while (!view.ready_optimizer_ops().empty())
        CHECK(decisions.run(view.ready_optimizer_ops().front(), optimizer_) == Reply::Issued, "what is ready waits");
    }
  }

 private:
  std::string home_;
  Engine optimizer_;
};

}  // namespace tandem

TANDEM_POLICY(on_demand, OnDemand, "Fetch at need, evict least recently used", "home", "optimizer")
