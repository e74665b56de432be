// Hybrid training, fine-grained (D. R. Joshi's thesis, PES University, about 2024, section 5.2): beside
// the shares of the batch (hybrid_coarse), the CPU's parameter update runs under the device's backward. Gradients leave
// as the backward makes them; the CPU updates the layers whose gradients come first, the device the others.
//
// What differs from the thesis. It says little of how; as read here, both sides hold all parameters and both apply
// every update, so that gradients alone cross the link. Here a step has each update once: the side that did not make it
// gets the parameters, in place of the gradient that it would need for its own, as many bytes in fp32. States stay
// where they are updated. Which layers are the CPU's is CoTrain's separation distance (section 4.5.2 of the thesis
// starts from it).
//
// Without a number of yours, share and separation are what trials by the estimates find fastest. All on the device is
// among them, and is kept where nothing is faster by 1%.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/policies/common/options.hpp"
#include "core/policies/common/places.hpp"
#include "core/policies/common/trial.hpp"

namespace tandem {
namespace {

constexpr AllowedPlaces kMovable{.transforms = false, .remote = false, .cpu = true};
constexpr const char* kAllOnDevice = "100000";  // layers, the most that the option takes

bool is_auto(const Scenario& scenario, const std::string& option) {
  const std::string text = text_option(scenario, option);
  return text.empty() || text == "auto";
}

double trial_steps_ns(const Scenario& trial);

std::vector<std::string> separations_to_try(const Scenario& scenario) {
  if (!is_auto(scenario, "separation")) return {text_option(scenario, "separation")};
  return {kAllOnDevice, "auto"};
}

// Of a step's micro-batches, those that are tried until one is no faster than the one before: the more the CPU has, the
// sooner the device is done, until it is the CPU that is waited for.
std::vector<std::int64_t> shares_to_try(const Scenario& scenario) {
  constexpr std::int64_t kShares = 16;
  if (const auto given = cpu_share_option(scenario)) return {*given};
  const std::int64_t most = scenario.workload.devices == 1 ? scenario.workload.micro_batches - 1 : 0;
  const std::int64_t stride = std::max<std::int64_t>(1, (most + kShares - 1) / kShares);
  std::vector<std::int64_t> shares;
  for (std::int64_t share = 0; share <= most; share += stride) shares.push_back(share);
  return shares;
}

// The scenario with both options decided. As it is where nothing fits, or nothing was asked.
Scenario settled(const Scenario& scenario) {
  constexpr double kWorthwhile = 0.99;
  if (!is_auto(scenario, "separation") && !is_auto(scenario, "cpu_share")) return scenario;
  const auto micro_batches = static_cast<double>(scenario.workload.micro_batches);
  Scenario best = scenario;
  double least = std::numeric_limits<double>::infinity();
  for (const std::int64_t share : shares_to_try(scenario)) {
    const double before = least;
    for (const std::string& separation : separations_to_try(scenario)) {
      Scenario trial = scenario;
      trial.policy.options["separation"] = separation;
      trial.policy.options["cpu_share"] = std::to_string(static_cast<double>(share) / micro_batches);
      const double ns = trial_steps_ns(trial);
      if (ns < kWorthwhile * least) best = trial, least = ns;
    }
    if (share > 0 && least == before) break;
  }
  return best;
}

}  // namespace

class HybridFine final : public PlacedPolicy {
 public:
  explicit HybridFine(const Scenario& scenario) : HybridFine(settled(scenario), Settled{}) {}

  struct Settled {};
  HybridFine(const Scenario& scenario, Settled)
      : PlacedPolicy(scenario, kMovable, {"cotrain", {{"separation", text_option(scenario, "separation")}}}),
        places_{.cpu_micro_batches = cpu_share_option(scenario).value_or(0)} {
    begin_with(places_);
  }

 protected:
  Places choose(const View&, std::int32_t) override { return places_; }

 private:
  Places places_;
};

namespace {

// How a run begins does not count.
double trial_steps_ns(const Scenario& trial) {
  constexpr std::int32_t kFirstSteps = 4, kSteps = 8;
  const auto took = [&](std::int32_t steps) {
    return trial_ns(trial, std::make_unique<HybridFine>(trial, HybridFine::Settled{}), 0, steps);
  };
  const auto all = took(kSteps), begin = took(kFirstSteps);
  if (!all || !begin) return std::numeric_limits<double>::infinity();
  return static_cast<double>(*all - *begin);
}

}  // namespace
}  // namespace tandem

TANDEM_POLICY(hybrid_fine, HybridFine, "The same, and the CPU updates some layers while the device goes backward",
              "cpu_share", "separation")
