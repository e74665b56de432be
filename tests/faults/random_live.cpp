#include "tests/faults/random_live.hpp"

#include "tests/common/policies.hpp"

namespace tandem::testing {
namespace {

void draw_scenario(Draw& draw, Scenario& s) {
  static const std::vector<std::string> kPolicies = [] {
    std::vector<std::string> all = exact_policies();
    for (const std::string& policy : approximate_policies()) all.push_back(policy);
    return all;
  }();
  const std::string& policy = draw.of(kPolicies);
  constexpr std::int64_t kFor16Bits = 300 << 10;  // workspace that no other precision needs
  const DType precision = draw.of<DType>({DType::F32, DType::BF16});
  const std::int64_t needed = device_bytes(policy) + (precision == DType::BF16 ? kFor16Bits : 0);
  s = tiny_gpt(policy, draw.of<std::int64_t>({kAmple, needed * 5 / 4, needed * 2}));
  s.workload.keys["layers"] = 1 + draw.below(3);
  s.workload.keys["hidden"] = 8 * (1 + draw.below(2));
  s.workload.micro_batches = 1 + draw.below(2);
  s.workload.keys["tied_embedding"] = draw.below(2) == 0;
  s.workload.precision = precision;
  s.optimizer.clip_norm = draw.below(2) == 0 ? 1 : 0;
  s.steps = static_cast<std::int32_t>(2 + draw.below(3));
  static const std::vector<std::string> kForDisks{"on_demand", "zero_infinity", "mlp_offload", "ssdtrain"};
  if (std::find(kForDisks.begin(), kForDisks.end(), policy) != kForDisks.end() && draw.below(3) > 0) {
    s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 128 << 10;
    s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 1 << 20;
  }
}

}  // namespace

RandomLive random_live(std::uint64_t seed) {
  Draw draw(seed);
  RandomLive out{};
  draw_scenario(draw, out.scenario);
  out.run.streams = draw.below(2) == 0;
  out.run.checked = false;
  std::vector<Site> sites{Site::Command, Site::Body};
  if (out.scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes > 0) sites.push_back(Site::Disk);
  if (out.run.streams)
    for (const Site site :
         {Site::DeviceMemory, Site::PinnedMemory, Site::Streams, Site::Copy, Site::Launch, Site::Mark, Site::Reached})
      sites.push_back(site);
  out.plan.site = draw.of(sites);
  constexpr std::int64_t kMany = 1'000'000;  // to be taken modulo what there are
  out.plan.k = draw.below(kMany);
  out.plan.fault = draw.of<Fault>({Fault::None, Fault::Fail, Fault::Fail, Fault::FailWithoutText, Fault::Hang,
                                   Fault::Hang, Fault::Late, Fault::Interrupt});
  // Before the run there is nothing in flight that a watchdog could look at.
  const bool before =
      out.plan.site == Site::DeviceMemory || out.plan.site == Site::PinnedMemory || out.plan.site == Site::Streams;
  if (before && out.plan.fault == Fault::Hang) out.plan.fault = Fault::Fail;
  constexpr std::int64_t kMostDelayUs = 300;
  out.plan.delay_seed = draw.below(4) == 0 ? 0 : seed + 1;
  out.plan.most_delay = std::chrono::microseconds(draw.below(kMostDelayUs));
  out.plan.late_in = 8;
  return out;
}

}  // namespace tandem::testing
