// Checkpoints of pipelines: stages save what they have into one folder, of one device's format, from which any number
// of them goes on to the same bits. A rank that dies while it saves leaves the checkpoint before.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "runtime/body_table.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// A run, or what is left of one. All that its ranks are told.
struct Part {
  std::int64_t stages = 1, chunks = 1, copies = 1;
  std::int32_t steps = 1;
  std::string directory, precision = "fp32", policy = "zero_offload";
  double clip_norm = 0.5;
  bool resumes = false;
  // This rank is killed while it saves its second stage after that training step.
  Rank victim = kNone;
  std::int32_t killed_after = kNone;
  std::string partition = "none";
  int state_bits = 32;
};

std::vector<std::string> arguments_of(const Part& p) {
  std::vector<std::string> arguments{"--gtest_filter=*DISABLED_SavingStage*",
                                     "--gtest_also_run_disabled_tests",
                                     "--directory=" + p.directory,
                                     "--precision=" + p.precision,
                                     "--policy=" + p.policy,
                                     "--partition=" + p.partition};
  const auto add = [&](const char* name, auto number) {
    arguments.push_back("--" + std::string(name) + "=" + std::to_string(number));
  };
  add("stages", p.stages), add("chunks", p.chunks), add("copies", p.copies), add("steps", p.steps);
  add("clip", p.clip_norm), add("resumes", int{p.resumes}), add("victim", p.victim), add("killed", p.killed_after);
  add("bits", p.state_bits);
  return arguments;
}

Part from_arguments() {
  const auto number = [](const char* name) { return std::stoi(argument(name)); };
  return {.stages = number("stages"),
          .chunks = number("chunks"),
          .copies = number("copies"),
          .steps = number("steps"),
          .directory = argument("directory"),
          .precision = argument("precision"),
          .policy = argument("policy"),
          .clip_norm = std::stod(argument("clip")),
          .resumes = number("resumes") != 0,
          .victim = number("victim"),
          .killed_after = number("killed"),
          .partition = argument("partition"),
          .state_bits = number("bits")};
}

constexpr std::int64_t kSamples = 4;

Scenario scenario_of(const Part& p) {
  Scenario s = testing::gpt_scenario(p.policy, 64 * kMiB);
  s.steps = p.steps;
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.workload.keys["hidden"] = 16;
  s.workload.keys["heads"] = 2;
  s.workload.keys["sequence"] = 8;
  s.workload.precision = p.precision == "fp16" ? DType::F16 : p.precision == "bf16" ? DType::BF16 : DType::F32;
  s.workload.batch = kSamples / p.copies;
  s.workload.micro_batches = 2;
  s.workload.devices = p.copies;
  s.workload.partition = p.partition;
  s.optimizer.state_bits = p.state_bits;
  s.parallel = {.pipeline = p.stages, .chunks = p.chunks, .schedule = p.chunks > 1 ? "interleaved" : "1f1b"};
  s.optimizer.weight_decay = 0.1;
  s.optimizer.clip_norm = p.clip_norm;
  s.checkpoint = {p.directory, 1, 10};
  s.seed = 5;
  if (p.victim != kNone) s.watchdog_ns = std::int64_t{2'000'000'000};  // not all talk to the one that is gone
  if (p.resumes) resume_from(s, p.directory, /*verify=*/true);
  return s;
}

std::int32_t killed_after = kNone;

std::int64_t save_or_die(BodyCall& call) {
  static int saves = 0;
  if (call.step() + 1 == killed_after && ++saves == 2) std::raise(SIGKILL);
  return find_body(call.work).body(call);
}

const BodyEntry& find_deadly_body(const Work& work) {
  static constexpr BodyEntry kSave{"checkpoint.save", save_or_die};
  return work.body == kSave.name ? kSave : find_body(work);
}

TrainOptions options_of(const Part& p, Rank rank) {
  set_thread_count(1);
  TrainOptions options;
  options.rank = rank;
  options.library = torch_library();
  options.library.find_body = &find_deadly_body;
  killed_after = p.victim == rank ? p.killed_after : kNone;
  return options;
}

std::string dump_path(const Part& p, Rank rank) { return p.directory + ".rank" + std::to_string(rank); }

// What all ranks have in the end, of which this process is the leading one.
RankBits trained(const Part& p) {
  const Scenario scenario = scenario_of(p);
  const Rank own = leading_rank(scenario);
  TrainOptions options = options_of(p, own);
  if (rank_count(scenario) == 1) {
    Training training(scenario, options);
    training.run();
    return bits_of(training);
  }
  RankProcesses peers(rank_count(scenario), arguments_of(p), "", own);
  options.meeting_file = peers.meeting_file();
  Training training(scenario, options);
  training.run();
  peers.finish();
  RankBits bits = bits_of(training);
  for (Rank rank = 0; rank < rank_count(scenario); ++rank)
    if (rank != own) bits.merge(read(dump_path(p, rank)));
  return bits;
}

class PipelineCheckpoints : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/tandem-stages-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string directory(const std::string& name) const { return folder_ + "/" + name; }
  // All bytes of a checkpoint's tensors.
  static std::map<std::string, std::string> files(const std::string& checkpoint) {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::directory_iterator(checkpoint))
      if (entry.path().extension() == ".safetensors") {
        std::ifstream in(entry.path(), std::ios::binary);
        out[entry.path().filename()] = {std::istreambuf_iterator<char>(in), {}};
      }
    return out;
  }
  static std::vector<std::int32_t> steps_in(const std::string& directory) {
    std::vector<std::int32_t> steps;
    for (const SavedState& saved : complete_checkpoints(directory)) steps.push_back(saved.step);
    return steps;
  }
  std::string folder_;
};

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
  const Part part = from_arguments();
  const Scenario scenario = scenario_of(part);
  const Rank rank = std::stoi(argument("rank"));
  TrainOptions options = options_of(part, rank);
  options.meeting_file = argument("meeting-file");
  try {
    Training training(scenario, options);
    training.run();
    RankBits bits = bits_of(training);
    bits.erase("loss");
    write(bits, dump_path(part, rank));
  } catch (const DeviceError&) {  // a check that failed would be counted among the failed tests of the leading rank
    std::exit(EXIT_FAILURE);
  }
}

}  // namespace
}  // namespace tandem
