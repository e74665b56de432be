// Which modules a scenario has the CPU compute.
#include "core/step/placement.hpp"

#include <gmock/gmock.h>

#include "core/base/errors.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string placed(const std::string& words) {
  Scenario s = testing::gpt_scenario("resident", 64 * kMiB, 12);
  s.policy.options["cpu_modules"] = words;
  std::string out;
  for (const bool on_cpu : modules_on_cpu(network_of(s), s)) out += on_cpu ? 'c' : '.';
  return out;
}

TEST(Placement, NamesRangesAndBeginnings) {  // embedding, block0 to block11, head
  EXPECT_EQ(placed(""), "..............");
  EXPECT_EQ(placed("block1"), "..c...........") << "and not block10";
  EXPECT_EQ(placed("head,embedding"), "c............c");
  EXPECT_EQ(placed(" block2..4 , block9..30"), "...ccc....ccc.");
  EXPECT_EQ(placed("block1*"), "..c........cc.");
  EXPECT_EQ(placed("*"), "cccccccccccccc");
}

TEST(Placement, RefusesWhatNoModuleIsCalled) {
  for (const char* wrong : {"block12", "blok*", "block3..2", "block0,", "block..2", "head0..1", "embedding..head"}) {
    SCOPED_TRACE(wrong);
    try {
      placed(wrong);
      ADD_FAILURE();
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("policy.cpu_modules: no module of this network is called"));
      EXPECT_THAT(error.what(), ::testing::HasSubstr("allowed: embedding, block0, block1"));
    }
  }
}

// The CPU's libraries need other temporaries than a GPU's.
TEST(Placement, WorkspaceIsThatOfTheProcessor) {
  Scenario s = testing::gpt_scenario("resident", 64 * kMiB, 2);
  s.workload.precision = DType::BF16;
  s.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 256 * kMiB;
  const auto workspace = [](const Scenario& scenario, const std::string& name) {
    const CostModel estimate(scenario.machine);
    const auto scheduler = make_scheduler(scenario, estimate);
    std::vector<Command> commands;
    scheduler->on_events({}, commands);
    for (OpId id = 0; id < scheduler->graph().op_count(); ++id)
      if (scheduler->graph().op_name(id) == name) return scheduler->graph().op(id).workspace_bytes;
    return std::int64_t{-1};
  };
  const std::string kOps[] = {"step0/mb0/block0.forward", "step0/mb0/block0.backward", "step0/mb0/block1.backward"};
  Scenario cpu_alone = s, gpu_alone = s, both = s;
  cpu_alone.machine.gpu = false;
  gpu_alone.machine.gpu = both.machine.gpu = true;
  both.policy.options["cpu_modules"] = "block0";
  for (const std::string& op : {kOps[0], kOps[1]}) {
    EXPECT_EQ(workspace(both, op), workspace(cpu_alone, op)) << op;
    EXPECT_NE(workspace(both, op), workspace(gpu_alone, op)) << op;
  }
  EXPECT_EQ(workspace(both, kOps[2]), workspace(gpu_alone, kOps[2]));
}

}  // namespace
}  // namespace tandem
