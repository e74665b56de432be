// A run that is saved and resumed goes on as if it had never ended: parameters, optimizer states and losses are those
// of the run in one piece, to the bit, under every policy, and under another one than it was saved with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "core/base/errors.hpp"
#include "core/scheduler/happens_before.hpp"
#include "core/scheduler/replay.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct Outcome {
  std::vector<std::int64_t> losses;
  std::map<std::string, std::vector<std::byte>> tensors;  // parameters and states, without what pads their fields
};

// The bytes of a bucket's fields: padding holds no state.
std::vector<std::byte> field_bytes(const Tensor& tensor, const std::vector<std::byte>& bytes) {
  if (tensor.layout == nullptr) return bytes;
  std::vector<std::byte> out;
  if (tensor.type == DType::U8) return bytes;  // whole blocks, of which what pads their fields is a part
  for (const Field& field : tensor.layout->fields) {
    const auto begin = bytes.begin() + field.offset / size_of(DType::F32) * size_of(tensor.type);
    out.insert(out.end(), begin, begin + field.elements() * size_of(tensor.type));
  }
  return out;
}

std::vector<std::int64_t> losses_of(const Training& training) {
  std::map<CommandId, OpId> ops;
  std::vector<std::int64_t> losses;
  for (const auto& entry : training.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto op = ops.find(event.command); op != ops.end()) losses.push_back(event.result);
    for (const Command& command : entry.commands) {
      if (command.kind != CommandKind::Run) continue;
      const Op& op = training.graph().op(command.op);
      if (op.phase == Phase::Forward && op.has_result) ops[command.id] = command.op;
    }
  }
  return losses;
}

void expect_replays(const Training& training, const Scenario& scenario) {
  const CostModel estimate(scenario.machine);
  const auto scheduler = make_scheduler(scenario, estimate);
  Scheduler* ranks[] = {scheduler.get()};
  ReadLog log;
  log.entries = training.log().entries();
  EXPECT_EQ(replay(log, ranks).difference, "");
}

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_thread_count(1);
    std::string name = ::testing::TempDir() + "/tandem-resume-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }

  Outcome train(const Scenario& scenario, std::atomic<bool>* interrupt = nullptr) {
    TrainOptions options;
    options.poison = true;
    options.interrupt = interrupt;
    Training training(scenario, options);
    HappensBefore checker(training.graph());
    training.run(&checker);
    EXPECT_EQ(checker.violation(), "");
    expect_replays(training, scenario);
    stopped_ = training.stopped();
    Outcome outcome{losses_of(training), {}};
    for (TensorId id = 0; id < training.graph().tensor_count(); ++id) {
      const Tensor& tensor = training.graph().tensor(id);
      if (tensor.persistent) outcome.tensors[tensor.name] = field_bytes(tensor, training.latest(id));
    }
    return outcome;
  }

  void expect_goes_on(const Scenario& saved, const Scenario& resumed) {
    Scenario straight = saved, first = saved, second = resumed;
    straight.steps = 6;
    first.steps = 3;
    second.steps = 6;
    first.checkpoint = second.checkpoint = {directory_, 2, 2};
    const Outcome whole = train(straight), head = train(first);
    resume_from(second, directory_, /*verify=*/true);
    EXPECT_EQ(second.first_step, 3);
    const Outcome tail = train(second);
    std::vector<std::int64_t> losses = head.losses;
    losses.insert(losses.end(), tail.losses.begin(), tail.losses.end());
    EXPECT_EQ(losses, whole.losses);
    EXPECT_EQ(tail.tensors.size(), whole.tensors.size());
    for (const auto& [name, bytes] : whole.tensors) EXPECT_TRUE(tail.tensors.at(name) == bytes) << name;
    EXPECT_EQ(complete_checkpoints(directory_).back().step, 6);
    fs::remove_all(directory_);
  }

  static Scenario scenario(const std::string& policy, DType precision, bool delayed = false) {
    const bool states_on_device = policy == "resident" || policy == "ssdtrain";
    Scenario s = testing::gpt_scenario(policy, states_on_device ? 64 * kMiB : 3 * kMiB / 2, 2);
    if (policy == "ssdtrain") {
      s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 64 * kMiB;
      s.policy.options["offload_blocks"] = "1";
    }
    s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 64 * kMiB;
    s.workload.precision = precision;
    s.seed = 7;
    s.optimizer.initial_loss_scale = 0x1p24;  // fp16: some steps are skipped, and the scale moves
    s.optimizer.loss_scale_interval = 2;
    if (policy == "lsp_offload") s.policy.options["check_every"] = "2";  // before and after the checkpoint
    if (delayed) s.policy.options["delayed_update"] = "true";
    return s;
  }

  std::string directory_;
  bool stopped_ = false;
};

struct Case {
  std::string policy;
  DType precision;
  bool delayed;
  std::int64_t state_bits = 32;
  std::string optimizer = "adamw";
  bool masters = true;
};

class CheckpointPolicyTest : public CheckpointTest, public ::testing::WithParamInterface<Case> {};

TEST_P(CheckpointPolicyTest, AResumedRunEqualsTheRunInOnePiece) {
  Scenario s = scenario(GetParam().policy, GetParam().precision, GetParam().delayed);
  s.optimizer.state_bits = GetParam().state_bits;
  s.optimizer.name = GetParam().optimizer;
  s.optimizer.masters = GetParam().masters;
  if (s.optimizer.name == "sgd") s.optimizer.momentum = 0.9;
  if (s.optimizer.name == "adafactor") s.optimizer.loss_scaling = false;
  expect_goes_on(s, s);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (DType precision : {DType::F32, DType::BF16, DType::F16}) {
    for (const std::string& policy : testing::exact_policies()) all.push_back({policy, precision, false});
    if (precision != DType::F16)
      for (const std::string& policy : testing::approximate_policies()) all.push_back({policy, precision, false});
    all.push_back({"zero_offload", precision, true});
    for (const std::int64_t state_bits : {8, 4}) {
      all.push_back({"split_update", precision, false, state_bits});
      all.push_back({"balanced", precision, false, state_bits});
    }
    for (const char* optimizer : {"adafactor", "lion", "sgd"})
      for (const bool masters : {true, false}) all.push_back({"balanced", precision, false, 32, optimizer, masters});
    all.push_back({"zero_infinity", precision, false, 16, "adamw", false});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Policies, CheckpointPolicyTest, ::testing::ValuesIn(cases()), [](const auto& test) {
  return test.param.policy + "_" + std::string(name_of(test.param.precision)) + (test.param.delayed ? "_delayed" : "") +
         (test.param.state_bits == 32 ? "" : "_" + std::to_string(test.param.state_bits) + "_bits") +
         (test.param.optimizer == "adamw" ? "" : "_" + test.param.optimizer) +
         (test.param.masters ? "" : "_without_masters");
});

// A frozen module begins as it began: it is in no file. In fp16 it has no masters either.
TEST_F(CheckpointTest, NetworksWithFrozenModulesGoOn) {
  for (const DType precision : {DType::F32, DType::F16, DType::BF16}) {
    Scenario s = testing::gpt_scenario("zero_offload", std::int64_t{64} << 20);
    s.workload.family = "whisper";
    s.workload.keys = find_workload("whisper")->keys->small_instance();
    s.workload.precision = precision;
    expect_goes_on(s, s);
    fs::remove_all(directory_);
    fs::create_directory(directory_);
  }
}

TEST_F(CheckpointTest, AnotherPolicyGoesOnFromTheSameState) {
  for (DType precision : {DType::F32, DType::BF16}) {
    expect_goes_on(scenario("resident", precision), scenario("cotrain", precision));
    expect_goes_on(scenario("balanced", precision), scenario("zero_offload", precision));
  }
}

TEST_F(CheckpointTest, ClippedAccumulatedAndRecomputedStepsGoOn) {
  Scenario s = scenario("split_update", DType::BF16);
  s.workload.micro_batches = 2;
  s.workload.recompute = "block";
  s.workload.keys["tied_embedding"] = false;
  s.optimizer.clip_norm = 0.5;
  s.optimizer.weight_decay = 0.1;
  expect_goes_on(s, s);
}

TEST_F(CheckpointTest, StatesOnTheDiskAreSavedThroughTheHost) {
  Scenario s = scenario("on_demand", DType::F32);
  s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 64 * kMiB;
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 3 * kMiB / 2;  // less than the states
  s.policy.options["home"] = "disk";
  expect_goes_on(s, s);
}

TEST_F(CheckpointTest, StatesOnTheDeviceNeedRoomForOneBucketOnTheHost) {
  Scenario s = scenario("resident", DType::F32);
  // A block's parameters and moments are 0.6 MB, those of the whole network 1.5 MB.
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = kMiB;
  expect_goes_on(s, s);
}

TEST_F(CheckpointTest, AnInterruptedRunSavesAfterAWholeStepAndGoesOn) {
  for (const bool delayed : {false, true}) {
    Scenario s = scenario("zero_offload", DType::BF16, delayed);
    s.steps = 100000;
    s.checkpoint = {directory_, 0, 2};
    std::atomic<bool> interrupt{true};
    Outcome all = train(s, &interrupt);
    EXPECT_TRUE(stopped_);
    const auto saved = complete_checkpoints(directory_);
    ASSERT_EQ(saved.size(), 1u);
    EXPECT_EQ(static_cast<std::size_t>(saved[0].step), all.losses.size());
    s.steps = saved[0].step + 2;
    Scenario straight = s;
    straight.checkpoint.directory.clear();
    resume_from(s, directory_, true);
    const Outcome tail = train(s);
    const Outcome whole = train(straight);
    all.losses.insert(all.losses.end(), tail.losses.begin(), tail.losses.end());
    EXPECT_EQ(all.losses, whole.losses);
    EXPECT_TRUE(tail.tensors == whole.tensors);
    fs::remove_all(directory_);
  }
}

// One letter of a text is enough, and so is one pixel: batches come from all of it.
TEST_F(CheckpointTest, OtherDataIsRefusedAndTheSameDataUnderAnotherNameIsNot) {
  const std::string text = directory_ + "/text.txt", copy = directory_ + "/copy.txt";
  std::string words;
  for (int i = 0; i < 400; ++i) words += "word " + std::to_string(i) + '\n';
  for (const std::string& file : {text, copy}) std::ofstream(file) << words;
  Scenario s = scenario("on_demand", DType::F32);
  s.data_text = text;
  s.steps = 2;
  s.checkpoint = {directory_ + "/saved", 0, 2};
  train(s);
  Scenario resumed = s;
  resumed.steps = 3;
  resumed.data_text = copy;
  resumed.checkpoint = {};
  resume_from(resumed, directory_ + "/saved", /*verify=*/true);
  EXPECT_TRUE(resumed.warnings.empty()) << resumed.warnings.front();
  train(resumed);
  words.back() = '!';
  std::ofstream(copy) << words;
  try {
    Training training(resumed);
    FAIL() << "other data is taken";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("--resume: data.text: the checkpoint " + directory_ + "/saved"));
  }
}

TEST_F(CheckpointTest, ADirectoryThatCannotBeMadeEndsTheRunWithItsName) {
  Scenario s = scenario("on_demand", DType::F32);
  s.steps = 2;
  s.checkpoint = {"/dev/null/checkpoints", 1, 2};
  Training training(s);
  try {
    training.run();
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("/dev/null/checkpoints"));
  }
}

}  // namespace
}  // namespace tandem
