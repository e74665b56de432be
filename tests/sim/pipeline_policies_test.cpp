// Policies that hold back computing while they update, in pipelines: what a stage sends, others wait for.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "analysis/analysis.hpp"
#include "analysis/timeline.hpp"
#include "core/base/errors.hpp"
#include "core/scheduler/refusal.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Forwards of 10 ms to 20, the second stage's backward to 40 and its update to 140, the first one's, which needs the
// gradient that the second sends at 40, to 60 and 160: no stage's update waits for another's.
TEST(PipelinePolicies, NoStageSendsAfterItsUpdate) {
  for (const char* policy : {"zero_offload", "zero_infinity", "mlp_offload"}) {
    Scenario s = layers_scenario(policy, 16 * kGiB, 2, 64, 10 * kMs, 20 * kMs, 100 * kMs);
    s.parallel.pipeline = 2;
    s.steps = 4;
    Simulation simulation(s);
    simulation.run();
    EXPECT_NEAR(analyse(simulation.record()).step_s.median, 160e-3, 1e-4) << policy;
  }
}

// Weights that the first stage and the last have in common, few micro-batches: ops of several steps are there at once.
TEST(PipelinePolicies, NoneWaitsForEver) {
  for (const char* policy : {"zero_offload", "zero_infinity", "mlp_offload", "deep_optimizer_states", "patrickstar",
                             "stronghold", "hybrid_coarse", "hybrid_fine"})
    for (const char* schedule : {"1f1b", "gpipe", "hippie", "axonn", "interleaved"})
      for (const std::int64_t micro_batches : {2, 4})
        for (const int layers : {2, 6}) {
          const bool interleaved = schedule == std::string("interleaved");
          if (interleaved && layers < 4) continue;
          SCOPED_TRACE(std::string(policy) + " " + schedule + " " + std::to_string(micro_batches) + " " +
                       std::to_string(layers));
          Scenario s = gpt_scenario(policy, kGiB, layers);
          s.machine = round_machine(kGiB, kGiB, kGiB);
          if (std::string(policy).starts_with("hybrid")) s.policy.options["cpu_share"] = "0.5";
          s.workload.micro_batches = micro_batches;
          s.parallel = {.pipeline = 2, .chunks = interleaved ? 2 : 1, .schedule = schedule};
          s.validation = {.every = 2, .batches = 1};
          Simulation simulation(s);
          for (const CheckedRank& rank : run_checked(simulation)) EXPECT_EQ(rank.violation, "");
        }
}

// Of four micro-batches through two stages the CPU has the last on both: it goes forward and backward there, beside the
// others, so that a step takes less.
TEST(PipelinePolicies, ACpuTrainsBesideAPipeline) {
  double alone_s = 0;
  const auto of_share = [](const char* share) {
    Scenario s = layers_scenario("hybrid_coarse", 16 * kGiB, 2, 64, 10 * kMs, 20 * kMs, kMs);
    s.workload.micro_batches = 4;
    s.parallel = {.pipeline = 2, .schedule = "gpipe"};
    s.policy.options["cpu_share"] = share;
    return s;
  };
  {
    const Scenario scenario = of_share("0");
    Simulation alone(scenario);
    alone.run();
    alone_s = analyse(alone.record()).step_s.median;
  }
  const Scenario scenario = of_share("0.25");
  Simulation shared(scenario);
  shared.run();
  const RunRecord record = shared.record();
  std::map<Rank, std::set<std::pair<std::int32_t, Phase>>> on_cpu;
  for (const auto& entry : record.log->entries())
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Run && command.lane.kind() == Engine::CpuCompute) {
        const Op& op = shared.graph(rank_of(command)).op(command.op);
        on_cpu[rank_of(command)].insert({op.micro_batch, op.phase});
      }
  const std::set<std::pair<std::int32_t, Phase>> both{{3, Phase::Forward}, {3, Phase::Backward}};
  EXPECT_EQ(on_cpu, (std::map<Rank, std::set<std::pair<std::int32_t, Phase>>>{{0, both}, {1, both}}));
  EXPECT_LT(analyse(record).step_s.median, alone_s);
}

// It issues the program in order, but nothing that sends.
class NeverSends final : public Policy {
 public:
  void decide(const View& view, Decisions& decisions) override {
    while (!view.compute_program().empty()) {
      const OpId next = view.compute_program().front();
      if (view.graph().op_name(next).find(".sent.") != std::string::npos) return;
      if (decisions.run(next) != Reply::Issued) return;
    }
  }
};

TEST(PipelinePolicies, WhoWaitsForWhomIsSaid) {
  Scenario s = layers_scenario("resident", 16 * kGiB, 2, 64, kMs, kMs, kMs);
  s.parallel.pipeline = 2;
  Simulation simulation(s, Fidelity::Shared, [](const Scenario&, Rank) { return std::make_unique<NeverSends>(); });
  try {
    simulation.run();
    FAIL();
  } catch (const DeviceError& stands) {
    EXPECT_STREQ(stands.what(),
                 "ranks wait for each other: rank 1 in step0/mb0/layer0.received.forward for rank 0; a policy holds "
                 "back what others wait for: issue the compute program in its order; or what is still to be sent has "
                 "the memory that they wait for: give more device memory, or parallel.schedule: 1f1b, which has less "
                 "under way");
  }
}

// The first stage goes forward to the end before it takes gradients back, which the last sends as it goes.
TEST(PipelinePolicies, WhoWaitsForRoomIsRefused) {
  Scenario s = gpt_scenario("zero_offload", 5 << 20, /*layers=*/8);
  s.workload.batch = 8;
  s.workload.micro_batches = 6;
  s.parallel = {.pipeline = 2, .schedule = "hippie"};
  const auto run = [](const Scenario& scenario) { Simulation(scenario).run(); };
  EXPECT_THROW(run(s), OutOfRoom);
  s.parallel.schedule = "1f1b";
  EXPECT_NO_THROW(run(s));
}

}  // namespace
}  // namespace tandem::testing
