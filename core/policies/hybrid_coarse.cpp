// Hybrid training, coarse-grained (D. R. Joshi's thesis, PES University, about 2024, section 5.1): a
// trainer on the CPU and the device each take a share of a step's batch, here of its micro-batches, and their gradients
// are brought together once a step. The share follows the rates of both, as the profile has them and as the run shows
// them (HyScale-GNN, of which the thesis speaks, calls it dynamic resource management).
//
// What overlaps: both sides' forward and backward. The CPU's gradients are a sum of their own, so that neither chain of
// accumulations waits for the other. What does not: a bucket's two sums are added on the device when the CPU's is
// there, and updates follow; then the CPU fetches the new parameters, layer by layer as its forward reads them.
//
// The thesis has two processes, each of which updates a copy of its own: gradients cross both ways. Here one update
// serves both: gradients cross up, parameters down, as many bytes in fp32.
#include "core/policies/common/measured_passes.hpp"
#include "core/policies/common/places.hpp"

namespace tandem {

class HybridCoarse final : public PlacedPolicy {
 public:
  explicit HybridCoarse(const Scenario& scenario)
      : PlacedPolicy(scenario, kMovable), given_(cpu_share_option(scenario)) {
    if (given_) begin_with({.cpu_micro_batches = *given_});
  }

  void decide(const View& view, Decisions& decisions) override {
    device_.follow(view);
    cpu_.follow(view);
    PlacedPolicy::decide(view, decisions);
  }

 protected:
  Places choose(const View& view, std::int32_t step) override {
    if (given_) return {.cpu_micro_batches = *given_};
    StepCosts costs = step_costs(view.graph(), view.estimate(), step);
    // A CPU that has computed nothing yet is taken to be as far from its estimate as the device is.
    const double device = device_.over_estimate().value_or(1);
    costs.device *= device;
    costs.cpu *= cpu_.over_estimate().value_or(device);
    costs.exchange = exchange_ns(view, step) + costs.update;
    const Places best = best_places(costs, kMovable);
    if (step_ns(costs, chosen_) > kWorthwhile * step_ns(costs, best)) chosen_ = best;
    return chosen_;
  }

 private:
  static constexpr AllowedPlaces kMovable{.transforms = false, .remote = false, .cpu = true};
  // Another share sums in another order: not for what noise may be.
  static constexpr double kWorthwhile = 1.02;

  // Parameters that the CPU waits for, and the last gradient that the device waits for: of the first bucket.
  static double exchange_ns(const View& view, std::int32_t step) {
    const Graph& graph = view.graph();
    std::int64_t down = 0, up = 0;
    for (OpId id = graph.op_count(); id-- > graph.era().first_op && graph.op(id).step == step;) {
      if (graph.op(id).phase != Phase::OptimizerStep) continue;
      for (const Write& write : graph.op(id).writes)
        if (graph.tensor_of(write.value).role == Role::Parameter)
          down += view.estimate().copy_ns(Engine::D2H, graph.value(write.value).bytes);
      for (const ValueId read : graph.op(id).reads)
        if (graph.tensor_of(read).role == Role::Gradient)
          up = view.estimate().copy_ns(Engine::H2D, graph.value(read).bytes);
    }
    return static_cast<double>(down + up);
  }

  std::optional<std::int64_t> given_;
  MeasuredPasses device_{Engine::Compute}, cpu_{Engine::CpuCompute};
  Places chosen_;
};

}  // namespace tandem

TANDEM_POLICY(hybrid_coarse, HybridCoarse,
              "A trainer on the CPU takes a share of the batch, by rates that the run shows", "states", "cpu_share")
