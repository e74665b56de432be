// Plain training: parameters, gradients, optimizer states and activations all stay on the device.
// What does not fit ends the run with exit code 3.
#include "core/base/check.hpp"
#include "core/policies/common/program.hpp"

namespace tandem {

class Resident final : public Policy {
 public:
  static constexpr bool kOffloads = false;
  explicit Resident(const Scenario&) {}

  PolicyTraits traits() const override { return {.may_evict = false}; }
  Tier home(const View&, TensorId) override { return Tier::Device; }

  void decide(const View& view, Decisions& decisions) override {
    // The forward of the next step is blocked until the optimizer steps are issued: plain training's order.
    while (feed_compute(view, decisions, [](OpId) {})) {
      if (view.ready_optimizer_ops().empty()) return;
      while (!view.ready_optimizer_ops().empty())
        CHECK(decisions.run(view.ready_optimizer_ops().front(), Engine::Compute) == Reply::Issued,
              "what is ready waits");
    }
  }
};

}  // namespace tandem

TANDEM_POLICY(resident, Resident, "Everything stays on the device: plain training")
