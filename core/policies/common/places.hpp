// What policies of multi-modal runs have in common: where decoding, the numbers made of it, and some of the
// micro-batches go, around a policy that sees to the rest (states, updates, activations). Must not know how it is
// chosen.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/scheduler/policy.hpp"
#include "core/transforms/split_batch.hpp"

namespace tandem {

struct Places {
  // What makes numbers of decoded items; else on the device, but for those that the CPU computes with.
  bool transforms_on_workers = false;
  double remote_share = 0;             // of items that workers of another host decode
  std::int64_t cpu_micro_batches = 0;  // of a step's, which the CPU computes
  bool operator==(const Places&) const = default;
};

// What a step has to do, in ns, by who could do it: estimates, each side alone.
struct StepCosts {
  double device = 0;           // a micro-batch on the device, update apart
  double cpu = 0;              // and on the CPU; 0: it cannot
  double update = 0;           // of the step, on the device
  double decoding = 0;         // of the step, on this host's workers
  double remote_decoding = 0;  // on another host's, its link included; 0: there are none
  double transforms = 0;       // of the step, on workers
  double device_transforms = 0;
  std::int64_t micro_batches = 1;
  double crowding = 1;  // how much longer the CPU's micro-batches and the workers each take while both are busy
  double exchange = 0;  // of a step, where the CPU computes some of it: what comes before and after them on its path
};
// Of the ops of one step of the graph.
StepCosts step_costs(const Graph& graph, const CostModel& estimate, std::int32_t step);
// What a step takes where everything overlaps: the busiest of device, workers, other host and CPU, of which the CPU and
// the workers crowd each other out of cores.
double step_ns(const StepCosts& costs, const Places& places);
// The fastest places among those that `allowed` has: by trying all. The first of equally fast ones.
struct AllowedPlaces {
  bool transforms = true, remote = true, cpu = true;
};
Places best_places(const StepCosts& costs, AllowedPlaces allowed);

class PlacedPolicy : public Policy {
 public:
  // Option `states`: auto | the name of a policy. auto: resident where everything fits, else balanced. `movable`: which
  // places a subclass may change.
  PlacedPolicy(const Scenario& scenario, AllowedPlaces movable);
  // With a policy that sees to the rest.
  PlacedPolicy(const Scenario& scenario, AllowedPlaces movable, const PolicyOptions& states);

  PolicyTraits traits() const override;
  Tier home(const View& view, TensorId tensor) override { return states_->home(view, tensor); }
  double remote_share(const View& view, OpId load) override;
  void decide(const View& view, Decisions& decisions) override;

 protected:
  // Of the step that was appended last, before any of its loads is issued.
  virtual Places choose(const View& view, std::int32_t step) = 0;
  // Of the first steps, which are appended before any choice: none on the CPU where nobody says so.
  void begin_with(const Places& places) { cpu_share_->micro_batches = places.cpu_micro_batches; }
  const Scenario& scenario() const { return scenario_; }
  // The policy that sees to the rest, by its name.
  const std::string& states_name() const { return states_name_; }

 private:
  void follow(const View& view);
  void add_for_cpu(const Graph& graph, const Op& op);
  void run_transforms(const View& view, Decisions& decisions);
  void run_on_cpu(const View& view, Decisions& decisions);
  void run_early(const View& view, Decisions& decisions);

  Scenario scenario_;
  AllowedPlaces movable_;
  std::string states_name_;
  std::unique_ptr<Policy> states_;
  std::shared_ptr<CpuShare> cpu_share_ = std::make_shared<CpuShare>();
  std::int32_t seen_step_ = -1;
  OpId seen_ = 0;
  std::map<std::int32_t, Places> places_;  // by step, of those that are not over
  std::deque<OpId> for_workers_, for_cpu_;
};

// The policy of that name, with its own options' defaults. Throws ConfigError where there is none. (core/run knows
// which there are.)
std::unique_ptr<Policy> policy_named(const Scenario& scenario, const std::string& name);

// Option `cpu_share`, of a step's micro-batches, in whole ones; none where it is not given, or "auto". The device keeps
// one.
std::optional<std::int64_t> cpu_share_option(const Scenario& scenario);

}  // namespace tandem
