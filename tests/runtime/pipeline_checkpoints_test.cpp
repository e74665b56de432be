// Checkpoints of pipelines: stages save what they have into one folder, of one device's format, from which any number
// of them goes on to the same bits. A rank that dies while it saves leaves the checkpoint before.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "tests/runtime/saved_runs.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::Part;
using testing::trained;

class PipelineCheckpoints : public testing::SavedRuns {};

TEST_F(PipelineCheckpoints, GoOnWithAnotherNumberOfStagesToTheSameBits) {
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    Part whole{.steps = 5, .directory = directory("whole_" + precision), .precision = precision};
    const RankBits straight = trained(whole);
    Part part = whole;
    part.directory = directory("parts_" + precision);
    RankBits last;
    for (const std::int64_t stages : {1, 2, 4, 2, 1}) {
      part.stages = stages;
      part.chunks = part.steps == 4 ? 2 : 1;
      part.steps = part.resumes ? part.steps + 1 : 1;
      last = trained(part);
      part.resumes = true;
    }
    ASSERT_EQ(part.steps, 5);
    RankBits parameters = straight;
    parameters.erase("loss"), last.erase("loss");
    EXPECT_EQ(last, parameters);
    ASSERT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
    for (int step = 1; step <= 5; ++step) {
      const std::string name = "/step-0000000" + std::to_string(step);
      EXPECT_EQ(files(part.directory + name), files(whole.directory + name)) << step;
    }
    EXPECT_GT(files(whole.directory + "/step-00000005").size(), 4U);
  }
}

// A step's samples are the same ones; only the order in which their gradients are added differs.
TEST_F(PipelineCheckpoints, GoOnWithAnotherNumberOfCopies) {
  Part part{.stages = 2, .copies = 2, .steps = 1, .directory = directory("copies")};
  trained(part);
  part.copies = 1;
  part.resumes = true;
  part.steps = 2;
  trained(part);
  part.copies = 2;
  part.steps = 3;
  trained(part);
  EXPECT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1, 2, 3}));
}

// Each rank writes its part of each file. Two copies have the sums of copies that divide nothing.
TEST_F(PipelineCheckpoints, RanksThatDivideStatesSaveAndGoOnToTheSameBits) {
  struct {
    const char* precision;
    int state_bits;
  } const kinds[] = {{"fp32", 32}, {"bf16", 32}, {"fp16", 32}, {"bf16", 8}};
  for (const auto& kind : kinds) {
    const std::string name = kind.precision + std::to_string(kind.state_bits);
    SCOPED_TRACE(name);
    Part whole{.copies = 2,
               .steps = 4,
               .directory = directory("whole_" + name),
               .precision = kind.precision,
               .clip_norm = 0,
               .state_bits = kind.state_bits};
    trained(whole);
    Part part = whole;
    part.directory = directory("parts_" + name);
    part.steps = 0;
    for (const auto& [partition, stages] :
         {std::pair{"optimizer", 2}, {"none", 1}, {"optimizer", 1}, {"optimizer", 2}}) {
      part.partition = partition;
      part.stages = stages;
      ++part.steps;
      trained(part);
      part.resumes = true;
    }
    ASSERT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1, 2, 3, 4}));
    for (int step = 1; step <= 4; ++step) {
      const std::string saved = "/step-0000000" + std::to_string(step);
      EXPECT_EQ(files(part.directory + saved), files(whole.directory + saved)) << step;
    }
  }
}

TEST_F(PipelineCheckpoints, DividedStatesGoOnWithAnotherNumberOfCopies) {
  Part part{.copies = 4, .steps = 1, .directory = directory("divided"), .partition = "states"};
  trained(part);
  part.resumes = true;
  for (const auto& [stages, copies] : {std::pair{2, 2}, {1, 1}, {1, 4}}) {
    part.stages = stages, part.copies = copies, ++part.steps;
    part.partition = copies == 1 ? "none" : "parameters";
    trained(part);
  }
  EXPECT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1, 2, 3, 4}));
}

TEST_F(PipelineCheckpoints, ARankThatDiesWhileItSavesLeavesTheOneBefore) {
  const Part whole{.steps = 3, .directory = directory("whole")};
  trained(whole);
  Part part{.stages = 3, .steps = 3, .directory = directory("killed"), .victim = 0, .killed_after = 2};
  EXPECT_THROW(trained(part), DeviceError);
  EXPECT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1}));
  EXPECT_TRUE(fs::exists(partial_folder(part.directory, 2))) << "it was not saving";
  part.victim = kNone;
  part.resumes = true;
  trained(part);
  EXPECT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_FALSE(fs::exists(partial_folder(part.directory, 2)));
  EXPECT_EQ(files(part.directory + "/step-00000003"), files(whole.directory + "/step-00000003"));
}

TEST_F(PipelineCheckpoints, ARankThatDiesWhileItSavesItsPartLeavesTheOneBefore) {
  Part part{.stages = 2,
            .copies = 2,
            .steps = 3,
            .directory = directory("killed_part"),
            .victim = 1,
            .killed_after = 2,
            .partition = "optimizer"};
  EXPECT_THROW(trained(part), DeviceError);
  EXPECT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1}));
  part.victim = kNone;
  part.resumes = true;
  trained(part);
  EXPECT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1, 2, 3}));
}

// The other processes of the tests above.
TEST(PipelineCheckpointsPeer, DISABLED_SavingStage) {
  const Part part = testing::from_arguments();
  const Scenario scenario = testing::scenario_of(part);
  const Rank rank = std::stoi(argument("rank"));
  TrainOptions options = testing::options_of(part, rank);
  options.meeting_file = argument("meeting-file");
  try {
    Training training(scenario, options);
    training.run();
    RankBits bits = bits_of(training);
    bits.erase("loss");
    write(bits, testing::dump_path(part, rank));
  } catch (const DeviceError&) {  // a check that failed would be counted among the failed tests of the leading rank
    std::exit(EXIT_FAILURE);
  }
}

}  // namespace
}  // namespace tandem
