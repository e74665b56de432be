// Unified-memory style: fetch what an op needs when it runs, evict what was least recently used. Everything computes on
// the device unless `optimizer: cpu`. States live in host memory, or on disk where host memory is short.
#include <memory>
#include <utility>

#include "core/base/check.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/trial.hpp"

namespace tandem {

class OnDemand final : public Policy {
 public:
  explicit OnDemand(const Scenario& scenario)
      : home_(choice_option(scenario, "home", {"auto", "host", "disk"})),
        optimizer_(choice_option(scenario, "optimizer", {"device", "cpu"}) == "cpu" ? Engine::CpuOptimizer
                                                                                    : Engine::Compute) {}
  // With a home to be tried.
  OnDemand(const Scenario& scenario, std::string home) : OnDemand(scenario) {
    home_ = std::move(home);
    tries_ = false;
  }

  PolicyTraits traits() const override {
    const bool bound = tries_ && home_ == "host";
    return {.bindings = bound ? bind_all(Tier::HostPinned, "home", home_) : std::vector<Binding>{}};
  }

  Tier home(const View& view, TensorId tensor) override {
    if (view.capacity_bytes(Tier::Disk) == 0) return Tier::HostPinned;
    begin(view);
    if (home_ != "auto") return home_ == "host" ? Tier::HostPinned : Tier::Disk;
    // Half of the host stays free for activations, gradients and what is on its way to and from the disk.
    const std::int64_t bytes = view.graph().tensor(tensor).bytes;
    const bool roomy = view.free_bytes(Tier::HostPinned) - bytes > view.capacity_bytes(Tier::HostPinned) / 2;
    return roomy || bytes > view.free_bytes(Tier::Disk) ? Tier::HostPinned : Tier::Disk;
  }

  void decide(const View& view, Decisions& decisions) override {
    while (feed_compute(view, decisions, [](OpId) {})) {
      if (view.ready_optimizer_ops().empty()) return;
      while (!view.ready_optimizer_ops().empty())
        CHECK(decisions.run(view.ready_optimizer_ops().front(), optimizer_) == Reply::Issued, "what is ready waits");
    }
  }

 private:
  // Where not all states are on the host with room to spare, tries what is left open, and then each home for all.
  void begin(const View& view) {
    if (begun_ || !tries_ || home_ != "auto") return;
    begun_ = true;
    std::int64_t bytes = 0;
    for (TensorId id = 0; id < view.graph().tensor_count(); ++id)
      if (view.graph().tensor(id).persistent) bytes += view.graph().tensor(id).bytes;
    if (2 * bytes < view.capacity_bytes(Tier::HostPinned)) return;
    for (const char* home : {"auto", "host", "disk"})
      if (fits_in_trial(view.scenario(), std::make_unique<OnDemand>(view.scenario(), home))) {
        home_ = home;
        return;
      }
  }

  std::string home_;
  bool tries_ = true, begun_ = false;
  Engine optimizer_;
};

}  // namespace tandem

TANDEM_POLICY(on_demand, OnDemand, "Fetch at need, evict least recently used", "home", "optimizer")
