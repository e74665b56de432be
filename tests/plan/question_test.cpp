// What a question fixes and leaves open, what is wrong with one, and the space that follows.
#include "plan/question.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "plan/space.hpp"

namespace tandem::testing {
namespace {

PlanFlags small() {
  PlanFlags flags;
  flags.model = "gpt2";
  flags.machine = "rtx_4090";
  return flags;
}

std::string refusal(const PlanFlags& flags) {
  try {
    space_of(Question(flags));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

const Axis* axis(const Space& space, const std::string& name) {
  for (const Axis& a : space.axes)
    if (a.name == name) return &a;
  return nullptr;
}

TEST(PlanQuestion, LeavesOpenWhatNobodySays) {
  const Space space = space_of(Question(small()));
  for (const char* name :
       {"policy", "precision", "workload.recompute", "workload.loss_tiles", "optimizer.state_bits", "samples"})
    EXPECT_NE(axis(space, name), nullptr) << name;
  EXPECT_EQ(axis(space, "workload.partition"), nullptr) << "one device has nothing to divide";
  EXPECT_EQ(axis(space, "precision")->choices.front().words, "bf16");
}

TEST(PlanQuestion, KeepsWhatIsSaid) {
  PlanFlags flags = small();
  flags.overrides = {"policy={name: balanced}", "workload.recompute=block", "workload.batch=4"};
  const Question question(flags);
  const Space space = space_of(question);
  for (const char* name : {"policy", "workload.recompute", "samples"}) EXPECT_EQ(axis(space, name), nullptr) << name;
  EXPECT_EQ(question.with({}).workload.recompute, "block");
  EXPECT_EQ(question.with({}).policy.name, "balanced");
}

TEST(PlanQuestion, FreesAKeyOfAFile) {
  const std::string path = ::testing::TempDir() + "plan_question.yaml";
  std::ofstream(path) << "machine: round_numbers\nworkload: {family: gpt, layers: 2, hidden: 64, heads: 2, vocabulary: "
                         "256, sequence: 32, batch: 2}\npolicy: {name: cotrain}\n";
  PlanFlags flags;
  flags.file = path;
  EXPECT_EQ(axis(space_of(Question(flags)), "policy"), nullptr);
  flags.free = {"policy"};
  EXPECT_NE(axis(space_of(Question(flags)), "policy"), nullptr);
  flags.free = {"polici"};
  EXPECT_EQ(refusal(flags), "--free: polici: the scenario does not say it; did you mean policy?");
}

TEST(PlanQuestion, ExactLeavesOutWhatComputesSomethingElse) {
  PlanFlags flags = small();
  flags.exact = true;
  const Space space = space_of(Question(flags));
  for (const Axis& a : space.axes)
    for (const Choice& choice : a.choices) EXPECT_FALSE(choice.other_mathematics) << a.name << ' ' << choice.words;
  for (const Choice& choice : axis(space, "samples")->choices) EXPECT_EQ(choice.samples, 8);
}

TEST(PlanQuestion, CutsTheSamplesOfAStep) {
  PlanFlags flags = small();
  flags.samples = 12;
  const Space space = space_of(Question(flags));
  std::vector<std::string> words;
  for (const Choice& choice : axis(space, "samples")->choices) words.push_back(choice.words);
  EXPECT_EQ(words, (std::vector<std::string>{"batch 12", "batch 6 x 2", "batch 4 x 3", "batch 3 x 4", "batch 2 x 6",
                                             "batch 1 x 12"}));
}

TEST(PlanQuestion, MarksCutsWhereBatchesAreNormalised) {
  PlanFlags flags = small();
  flags.model = "resnet-18";
  flags.samples = 4;
  const Space space = space_of(Question(flags));
  for (const Choice& choice : axis(space, "samples")->choices)
    EXPECT_EQ(choice.other_mathematics, choice.words != "batch 4") << choice.words;
}

TEST(PlanQuestion, RefusesByTheNameThatWasWritten) {
  PlanFlags flags;
  EXPECT_NE(refusal(flags).find("neither FILE nor --model"), std::string::npos);
  flags.model = "gpt2";
  EXPECT_NE(refusal(flags).find("--machine: is missing"), std::string::npos);
  flags.machine = "rtx4090";
  EXPECT_NE(refusal(flags).find("--machine: machine: there is no profile 'rtx4090', did you mean 'rtx_4090'?"),
            std::string::npos)
      << refusal(flags);
  flags.machine = "rtx_4090";
  flags.host_memory = "64";
  EXPECT_NE(refusal(flags).find("--host-memory: limits.host_bytes: '64' has no unit"), std::string::npos);
  flags.host_memory.clear();
  flags.overrides = {"workload.layer=3"};
  EXPECT_NE(refusal(flags).find("did you mean 'layers'?"), std::string::npos);
  flags.overrides = {"machine.collective.bandwidth=10GB/s"};
  flags.devices = 5;
  flags.samples = 6;
  EXPECT_NE(refusal(flags).find("--batch: 6 samples are not divisible by 5 devices"), std::string::npos)
      << refusal(flags);
}

// Where a person has more memory than the profile, the machine has it.
TEST(PlanQuestion, TakesMoreMemoryThanTheProfileHas) {
  PlanFlags flags = small();
  flags.machine = "gtx_1650";
  flags.host_memory = "64GB";
  const Scenario scenario = Question(flags).with({});
  EXPECT_EQ(scenario.machine.name, "gtx_1650");
  EXPECT_EQ(scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes, 64'000'000'000);
}

// The text means the same in another folder.
TEST(PlanQuestion, WritesWhatReadsBackElsewhere) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "plan_beside";
  fs::create_directories(folder);
  std::ofstream(folder / "mine.yaml") << "derive_from: round_numbers\nname: mine\n";
  std::ofstream(folder / "question.yaml") << "machine: mine\nworkload: {model: gpt2, sequence: 128}\n";
  PlanFlags flags;
  flags.file = (folder / "question.yaml").string();
  const Question question(flags);
  const std::string text = question.text_with({"policy={name: resident}", "workload.batch=2"});
  const Scenario scenario = parse_scenario(text, "elsewhere.yaml", {}, "/");
  EXPECT_EQ(scenario.machine.name, "mine");
  EXPECT_EQ(scenario.policy.name, "resident");
  EXPECT_EQ(scenario.workload.batch, 2);
}

}  // namespace
}  // namespace tandem::testing
