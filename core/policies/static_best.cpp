// The best places that do not change: found by trying all of a few on steps from all over the run, by estimates. What a
// policy that re-decides has to beat. Or those that the options name.
#include <algorithm>
#include <limits>
#include <optional>

#include "core/policies/common/options.hpp"
#include "core/policies/common/places.hpp"
#include "core/policies/common/trial.hpp"

namespace tandem {

namespace {

// Of a trial.
class Fixed final : public PlacedPolicy {
 public:
  Fixed(const Scenario& scenario, const Places& places) : PlacedPolicy(scenario, {}), places_(places) {
    begin_with(places);
  }

 protected:
  Places choose(const View&, std::int32_t) override { return places_; }

 private:
  Places places_;
};

// What a window's first steps take is also how a run begins: the later ones count.
constexpr std::int32_t kWindows = 5, kFirstSteps = 4, kWindowSteps = 12;
constexpr std::int64_t kCpuShares = 8;  // that are tried, of 0 to all but one micro-batch

// What windows all over the run take together.
double run_ns(const Scenario& scenario, const Places& places) {
  double ns = 0;
  const std::int32_t last = std::max(scenario.steps - kWindowSteps, 0);
  for (std::int32_t i = 0; i < kWindows; ++i) {
    const std::int32_t first = last * i / (kWindows - 1);
    const std::int32_t steps = std::min(kWindowSteps, scenario.steps - first);
    const auto took = [&](std::int32_t count) {
      return trial_ns(scenario, std::make_unique<Fixed>(scenario, places), first, count);
    };
    const auto all = took(steps), begin = steps > kFirstSteps ? took(kFirstSteps) : std::optional<std::int64_t>(0);
    if (!all || !begin) return std::numeric_limits<double>::infinity();
    ns += static_cast<double>(*all - *begin);
    if (last == 0) break;
  }
  return ns;
}

// `states`: known, so that no trial looks for them again.
Places searched(Scenario scenario, const std::string& states) {
  scenario.policy.options["states"] = states;
  Places best;
  double least = std::numeric_limits<double>::infinity();
  const std::int64_t most_on_cpu = scenario.workload.micro_batches - 1;
  const std::int64_t stride = std::max<std::int64_t>(1, (most_on_cpu + kCpuShares - 1) / kCpuShares);
  const bool remote = scenario.pipeline.remote_workers > 0;
  for (std::int64_t on_cpu = 0; on_cpu <= most_on_cpu; on_cpu += stride)
    for (const double share : {0.0, 0.25, 0.5, 0.75}) {
      if (share > 0 && !remote) break;
      for (const bool on_workers : {false, true}) {
        const Places places{on_workers, share, on_cpu};
        const double ns = run_ns(scenario, places);
        if (ns < least) best = places, least = ns;
      }
    }
  return best;
}

}  // namespace

class StaticBest final : public PlacedPolicy {
 public:
  explicit StaticBest(const Scenario& scenario) : PlacedPolicy(scenario, {}) {
    const std::string transforms = choice_option(scenario, "transforms", {"auto", "workers", "device"});
    const auto on_cpu = int_or_auto_option(scenario, "cpu_micro_batches", 0, 65536);
    if (transforms == "auto" && !on_cpu) return;
    given_ = Places{.transforms_on_workers = transforms == "workers",
                    .remote_share = scenario.pipeline.remote_share.value_or(0),
                    .cpu_micro_batches = on_cpu.value_or(0)};
    begin_with(*given_);
  }

 protected:
  Places choose(const View&, std::int32_t) override {
    if (!given_) given_ = searched(scenario(), states_name());
    return *given_;
  }

 private:
  std::optional<Places> given_;
};

}  // namespace tandem

TANDEM_POLICY(static_best, StaticBest, "The best places of inputs and micro-batches that do not change, by search",
              "states", "transforms", "cpu_micro_batches")
