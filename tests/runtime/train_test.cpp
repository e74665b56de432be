// A real run through scheduler and executor trains exactly as whole-graph autograd does, whatever a policy moves where.
#include "runtime/train.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/scheduler/happens_before.hpp"
#include "core/scheduler/replay.hpp"
#include "runtime/reference/reference.hpp"
#include "runtime/torch_setup.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/checked_run.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
// Parameters, gradients and both moments of the model below take 3.9 MB.
constexpr std::int64_t kTightDevice = 5 * kMiB / 2, kForStates = 6 * kMiB;

Scenario small_gpt(const std::string& policy) {
  Scenario s = testing::gpt_scenario(policy, kTightDevice);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.steps = 12;
  s.seed = 7;
  return s;
}

// Bits of the results of the head's forward in training, or in evaluation, in the graph's order: two processors that
// share a batch end in any order.
std::vector<std::int64_t> losses_of(const Training& training, std::string_view label) {
  std::map<CommandId, OpId> ops;
  std::map<OpId, std::int64_t> by_op;
  for (const auto& entry : training.log().entries()) {
    for (const Event& event : entry.batch.events) {
      const auto op = ops.find(event.command);
      if (op != ops.end() && training.graph().label(training.graph().op(op->second).label) == label)
        by_op[op->second] = event.result;
    }
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Run) ops[command.id] = command.op;
  }
  std::vector<std::int64_t> losses;
  for (const auto& [op, loss] : by_op) losses.push_back(loss);
  return losses;
}

// The norm of a step that was skipped may be no number, which equals nothing.
std::vector<std::int64_t> with_one_nan(const std::vector<double>& numbers) {
  std::vector<std::int64_t> bits;
  for (double x : numbers)
    bits.push_back(std::bit_cast<std::int64_t>(std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x));
  return bits;
}

void expect_same_losses(const Training& training, const ReferenceResult& reference) {
  std::vector<std::int64_t> expected, validation;
  for (const auto& step : reference.losses)
    for (double loss : step) expected.push_back(std::bit_cast<std::int64_t>(loss));
  for (const auto& evaluation : reference.evaluations)
    for (double loss : evaluation.losses) validation.push_back(std::bit_cast<std::int64_t>(loss));
  EXPECT_EQ(losses_of(training, "head.forward"), expected);
  EXPECT_EQ(losses_of(training, "head.evaluate"), validation);
  const RunRecord record = training.record();
  const Analysis analysis = analyse(record);
  EXPECT_EQ(with_one_nan(analysis.gradient_norm), with_one_nan(reference.gradient_norms));
  ASSERT_EQ(analysis.validation_loss.size(), reference.evaluations.size());
  for (std::size_t i = 0; i < reference.evaluations.size(); ++i) {
    double sum = 0;
    for (double loss : reference.evaluations[i].losses) sum += loss;
    EXPECT_EQ(analysis.validation_loss[i].step, reference.evaluations[i].step + 1);
    EXPECT_EQ(analysis.validation_loss[i].loss, sum / static_cast<double>(reference.evaluations[i].losses.size()));
  }
}

void expect_same_parameters(Training& training, const ReferenceResult& reference) {
  const auto parameters = training.parameters();
  ASSERT_EQ(parameters.size(), reference.parameters.size());
  for (const auto& [name, expected] : reference.parameters) {
    const auto& got = parameters.at(name);
    ASSERT_EQ(got.size(), expected.size()) << name;
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(expected[i])) << name << " at " << i;
  }
}

void expect_replays(const Training& training, const Scenario& scenario) {
  const CostModel estimate(scenario.machine);
  const auto scheduler = make_scheduler(scenario, estimate);
  Scheduler* ranks[] = {scheduler.get()};
  ReadLog log;
  log.entries = training.log().entries();
  const ReplayReport report = replay(log, ranks);
  EXPECT_EQ(report.difference, "");
  EXPECT_GT(report.commands, 0);
}

using Counts = std::function<bool(const Training&, ValueId)>;

std::int64_t copied_bytes(const Training& training, Engine lane, const Counts& counts) {
  std::int64_t bytes = 0;
  for (const auto& entry : training.log().entries())
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Copy && command.lane.kind() == lane && counts(training, command.part.value))
        bytes += command.part.bytes;
  return bytes;
}

bool all_count(const Training&, ValueId) { return true; }

// Returns the bytes that `lane` copied, of the values that count.
std::int64_t expect_exact(const Scenario& scenario, bool delayed_update = false, Engine lane = Engine::H2D,
                          const Counts& counts = all_count) {
  set_thread_count(1);
  TrainOptions options;
  options.poison = true;
  Training training(scenario, options);
  run_checked(training);
  const ReferenceResult reference = train_reference(scenario, *open_data(scenario), {.delayed_update = delayed_update});
  expect_same_losses(training, reference);
  expect_same_parameters(training, reference);
  expect_replays(training, scenario);
  return copied_bytes(training, lane, counts);
}

struct Case {
  const char* name;
  std::function<void(Scenario&)> change;
};

// A schedule and groups of parameters: every step and every kind of field is updated otherwise. And an evaluation now
// and then, among training steps that must not notice.
void schedule(Scenario& s, const char* name) {
  s.validation = {.every = 5, .batches = 2};
  s.optimizer.schedule = name;
  s.optimizer.warmup_steps = 3;
  s.optimizer.decay_steps = 10;
  s.optimizer.final_learning_rate = 1e-4;
  s.optimizer.weight_decay = 0.1;
  s.optimizer.decay = "matrices";
}

class TrainTest : public ::testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(TrainTest, EqualsWholeGraphAutogradToTheBit) {
  Scenario scenario = small_gpt(std::get<0>(GetParam()));
  std::get<1>(GetParam()).change(scenario);
  if (scenario.policy.name == "resident")
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 64 * kMiB;
  if (scenario.policy.name == "ssdtrain") {
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = kForStates;
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 64 * kMiB;
    scenario.policy.options["offload_blocks"] = scenario.workload.recompute == "none" ? "3" : "";
  }
  // Of several micro-batches the last one, which leaves sums in order.
  if (testing::has_option(scenario.policy.name, "cpu_share"))
    scenario.policy.options["cpu_share"] = std::to_string(1.0 / static_cast<double>(scenario.workload.micro_batches));
  expect_exact(scenario);
}

const Case kCases[] = {
    {"plain", [](Scenario&) {}},
    {"accumulation_2", [](Scenario& s) { s.workload.micro_batches = 2; }},
    {"accumulation_4_clipped",
     [](Scenario& s) {
       s.workload.micro_batches = 4;
       s.optimizer.clip_norm = 0.5;
       schedule(s, "linear");
     }},
    {"bf16", [](Scenario& s) { s.workload.precision = DType::BF16; }},
    {"bf16_accumulation_2_clipped_recomputed",
     [](Scenario& s) {
       s.workload.precision = DType::BF16;
       s.workload.micro_batches = 2;
       s.workload.recompute = "block";
       s.workload.keys["tied_embedding"] = false;
       s.optimizer.clip_norm = 0.5;
       schedule(s, "cosine");
     }},
    {"bf16_bert",
     [](Scenario& s) {
       s.workload.family = "bert";
       s.workload.precision = DType::BF16;
       schedule(s, "linear");
       s.optimizer.name = "adam";
     }},
    {"fp16_bert",
     [](Scenario& s) {
       s.workload.family = "bert";
       s.workload.precision = DType::F16;
     }},
    {"fp16_overflows_accumulation_2_clipped_recomputed",
     [](Scenario& s) {
       s.workload.precision = DType::F16;
       s.workload.micro_batches = 2;
       s.workload.recompute = "block";
       s.workload.keys["tied_embedding"] = false;
       s.optimizer.clip_norm = 0.5;
       s.optimizer.weight_decay = 0.1;
       s.optimizer.initial_loss_scale = 0x1p24;  // the first steps are skipped
       s.optimizer.loss_scale_interval = 4;      // and later ones again
     }},
    {"bert",
     [](Scenario& s) {
       s.workload.family = "bert";
       s.workload.recompute = "block";
     }},
    {"mlp",
     [](Scenario& s) {
       s.workload.family = "mlp";
       s.workload.keys["layers"] = 6;
       s.workload.keys["inputs"] = 64;
       s.workload.keys["hidden"] = 256;
       s.workload.keys["classes"] = 10;
       s.workload.batch = 32;
       s.workload.micro_batches = 2;
       schedule(s, "cosine");
       s.optimizer.name = "adam";
     }},
    {"states_of_8_bits",
     [](Scenario& s) {
       s.optimizer.state_bits = 8;
       schedule(s, "linear");
     }},
    {"bf16_states_of_8_bits_clipped_untied",
     [](Scenario& s) {
       s.workload.precision = DType::BF16;
       s.workload.keys["tied_embedding"] = false;
       s.optimizer.clip_norm = 0.5;
       s.optimizer.state_bits = 8;
     }},
    {"bf16_states_of_4_bits",
     [](Scenario& s) {
       s.workload.precision = DType::BF16;
       s.optimizer.state_bits = 4;
       schedule(s, "cosine");
     }},
    {"fp16_bert_states_of_4_bits_overflows",
     [](Scenario& s) {
       s.workload.family = "bert";
       s.workload.precision = DType::F16;
       s.optimizer.state_bits = 4;
       s.optimizer.initial_loss_scale = 0x1p24;
       s.optimizer.loss_scale_interval = 4;
     }},
    {"untied_clipped_recomputed",
     [](Scenario& s) {
       s.workload.keys["tied_embedding"] = false;
       s.workload.recompute = "block";
       s.optimizer.clip_norm = 0.5;
     }},
};

INSTANTIATE_TEST_SUITE_P(Policies, TrainTest,
                         ::testing::Combine(::testing::ValuesIn(testing::exact_policies()),
                                            ::testing::ValuesIn(kCases)),
                         [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param).name; });

TEST(TrainRunTest, DelayedUpdateEqualsTheDelayedReference) {
  for (const DType precision : {DType::F32, DType::BF16})
    for (const std::int64_t state_bits : {32, 8}) {
      Scenario scenario = small_gpt("zero_offload");
      scenario.policy.options["delayed_update"] = "true";
      scenario.workload.precision = precision;
      scenario.optimizer.state_bits = state_bits;
      schedule(scenario, "linear");
      expect_exact(scenario, /*delayed_update=*/true);
    }
}

TEST(TrainRunTest, AsDeepSpeedGradientsTravelInFp32) {
  for (const DType precision : {DType::BF16, DType::F32}) {
    Scenario scenario = small_gpt("zero_offload");
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 64 * kMiB;  // nothing is evicted
    scenario.workload.precision = precision;
    scenario.optimizer.clip_norm = precision == DType::BF16 ? 0.5 : 0;
    const std::int64_t paper = expect_exact(scenario, /*delayed_update=*/false, Engine::D2H);
    scenario.policy.options["variant"] = "deepspeed";
    const std::int64_t product = expect_exact(scenario, /*delayed_update=*/false, Engine::D2H);
    if (precision == DType::F32)
      EXPECT_EQ(product, paper);
    else
      EXPECT_GT(product, paper * 19 / 10);
  }
}

TEST(TrainRunTest, GradientsThatLeaveWhileNothingComputes) {
  for (const char* policy : {"zero_offload", "zero_infinity"})
    for (const char* variant : {"paper", "deepspeed"}) {
      Scenario scenario = small_gpt(policy);
      scenario.workload.precision = DType::BF16;
      scenario.workload.micro_batches = 2;
      scenario.optimizer.clip_norm = 0.5;
      scenario.policy.options = {{"gradient_copies", "blocking"}, {"variant", variant}};
      expect_exact(scenario);
    }
}

TEST(TrainRunTest, BlocksThatKeepRecomputeAndOffload) {
  for (const char* policy : {"zero_offload", "cotrain", "balanced", "stronghold", "deep_optimizer_states",
                             "zero_infinity", "mlp_offload", "protrain", "ssdtrain", "patrickstar"}) {
    Scenario scenario = small_gpt(policy);
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 64 * kMiB;  // nothing is evicted
    scenario.workload.keys["layers"] = 4;
    scenario.workload.micro_batches = 2;
    scenario.steps = 6;
    scenario.policy.options["recompute_blocks"] = "1";
    const auto is_activation = [](const Training& training, ValueId value) {
      return training.graph().tensor_of(value).role == Role::Activation;
    };
    EXPECT_EQ(expect_exact(scenario, false, Engine::D2H, is_activation), 0) << policy;
    scenario.policy.options["offload_blocks"] = "2";
    const std::int64_t out = expect_exact(scenario, false, Engine::D2H, is_activation);
    EXPECT_GT(out, 0) << policy;
    EXPECT_EQ(expect_exact(scenario, false, Engine::H2D, is_activation), out) << policy;
  }
}

// With hardly more than the least that any choice takes, and with room for some blocks to keep theirs.
TEST(TrainRunTest, BlocksThatRecomputeByChoice) {
  for (const char* policy : {"resident", "zero_offload", "patrickstar"})
    for (const std::int64_t bytes : {600'000, 700'000}) {
      Scenario scenario = small_gpt(policy);
      scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 64 * kMiB;
      scenario.workload.keys["layers"] = 4;
      scenario.workload.micro_batches = 2;
      scenario.workload.recompute = "optimal";
      scenario.workload.activation_bytes = bytes;
      scenario.steps = 4;
      expect_exact(scenario, /*delayed_update=*/false);
    }
}

TEST(TrainRunTest, BlocksThatRecomputeExceptInTheLastMicroBatch) {
  for (const char* policy : {"resident", "zero_offload", "balanced", "stronghold", "zero_infinity", "mlp_offload",
                             "protrain", "patrickstar", "l2l", "on_demand"}) {
    Scenario scenario = small_gpt(policy);
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 64 * kMiB;
    scenario.workload.keys["layers"] = 4;
    scenario.workload.micro_batches = 3;
    scenario.workload.recompute = "except_last";
    scenario.workload.checkpoint_every = 3;
    scenario.steps = 4;
    expect_exact(scenario, /*delayed_update=*/false);
  }
}

TEST(TrainRunTest, BlocksThatRecomputeInSegments) {
  for (const char* policy : {"resident", "zero_offload", "balanced", "stronghold", "zero_infinity", "mlp_offload",
                             "protrain", "patrickstar", "l2l"}) {
    Scenario scenario = small_gpt(policy);
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 64 * kMiB;
    scenario.workload.keys["layers"] = 4;
    scenario.workload.micro_batches = 2;
    scenario.workload.recompute = "block";
    scenario.workload.checkpoint_every = 3;
    scenario.steps = 4;
    expect_exact(scenario, /*delayed_update=*/false);
  }
}

TEST(TrainRunTest, SkippedStepsUnderDelayedUpdate) {
  Scenario scenario = small_gpt("zero_offload");
  scenario.policy.options["delayed_update"] = "true";
  scenario.workload.precision = DType::F16;
  scenario.optimizer.initial_loss_scale = 0x1p19;
  scenario.optimizer.loss_scale_interval = 4;
  const ReferenceResult reference = train_reference(scenario, *open_data(scenario), {.delayed_update = true});
  EXPECT_GT(reference.skipped_steps, 1);
  EXPECT_LT(reference.skipped_steps, scenario.steps / 2);
  expect_exact(scenario, /*delayed_update=*/true);
}

// After a step of such length no gradient is finite. Without a loss scale that could fall, to skip all that follow
// would be silent: the run ends, whether the parameter's new version has a place of its own or not.
TEST(TrainRunTest, StepsThatWouldAllBeSkippedEndARunWithoutALossScale) {
  for (const bool delayed : {false, true}) {
    Scenario scenario = small_gpt("zero_offload");
    if (delayed) scenario.policy.options["delayed_update"] = "true";
    scenario.workload.precision = DType::BF16;
    scenario.optimizer.clip_norm = 0.5;
    scenario.optimizer.learning_rate = 1e30;
    const ReferenceResult reference = train_reference(scenario, *open_data(scenario), {.delayed_update = delayed});
    EXPECT_GT(reference.skipped_steps, 1);
    Training training(scenario);
    EXPECT_THROW(training.run(), NotFiniteError);
  }
}

TEST(TrainRunTest, ResidentSaysWhatDoesNotFit) {
  const Scenario scenario = small_gpt("resident");
  Training training(scenario);
  EXPECT_THROW(training.run(), DoesNotFit);
}

TEST(TrainRunTest, StatesThatLiveOnTheDiskTrainTheSame) {
  Scenario scenario = small_gpt("on_demand");
  scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 64 * kMiB;
  scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 2 * kMiB;  // less than the states
  scenario.policy.options["home"] = "disk";
  EXPECT_GT(expect_exact(scenario, /*delayed_update=*/false, Engine::DiskRead), kMiB);
}

// The host is smaller than what is saved. Nothing but activations moves after the beginning.
TEST(TrainRunTest, ActivationsGoToTheDiskAndBack) {
  for (const DType precision : {DType::F32, DType::BF16, DType::F16}) {
    Scenario scenario = small_gpt("ssdtrain");
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 64 * kMiB;
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 64 * kMiB;
    scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = kMiB;
    scenario.workload.precision = precision;
    scenario.workload.micro_batches = 2;
    scenario.workload.keys["layers"] = 6;
    scenario.workload.batch = 8;
    scenario.steps = 5;
    scenario.policy.options = {{"offload_blocks", "3"}, {"buffers", "1"}};
    const auto moved = [&](Engine lane, bool activations) {
      return expect_exact(scenario, false, lane, [&](const Training& training, ValueId value) {
        return (training.graph().tensor_of(value).role == Role::Activation) == activations;
      });
    };
    // How much: as copies and passes happen to end. What is needed again before it was copied stays.
    EXPECT_GT(moved(Engine::DiskWrite, true), 0) << name_of(precision);
    EXPECT_GT(moved(Engine::DiskRead, true), 0) << name_of(precision);
    EXPECT_EQ(moved(Engine::D2H, false), 0) << name_of(precision);
  }
}

// Where the host may not hold them, or is smaller than the states.
TEST(TrainRunTest, EveryTensorGoesToTheDiskAndBackBetweenUses) {
  for (const bool host : {false, true}) {
    Scenario scenario = small_gpt("g10");
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 64 * kMiB;
    if (host) scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 3 * kMiB / 2;
    scenario.workload.micro_batches = 2;
    scenario.policy.options["host"] = host ? "true" : "false";
    for (const Engine lane : {Engine::DiskWrite, Engine::DiskRead})
      EXPECT_GT(expect_exact(scenario, /*delayed_update=*/false, lane), kMiB) << host;
  }
}

// The host is smaller than the states. What is read and written each step follows from where things live.
TEST(TrainRunTest, StatesParametersAndGradientsStreamFromAndToTheDisk) {
  for (const DType precision : {DType::F32, DType::BF16, DType::F16}) {
    Scenario scenario = small_gpt("zero_infinity");
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 64 * kMiB;
    scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 5 * kMiB / 4;
    scenario.workload.precision = precision;
    scenario.optimizer.clip_norm = precision == DType::BF16 ? 0.5 : 0;
    scenario.steps = 5;
    expect_exact(scenario);
    const auto moved = [&](Role role, Engine lane) {
      return expect_exact(scenario, false, lane, [role](const Training& training, ValueId value) {
        return training.graph().tensor_of(value).role == role;
      });
    };
    scenario.policy.options = {{"parameters", "disk"}, {"gradients", "disk"}, {"optimizer_states", "disk"}};
    EXPECT_GT(moved(Role::Parameter, Engine::DiskRead), kMiB);
    const std::int64_t gradients = moved(Role::Gradient, Engine::DiskWrite);
    EXPECT_GT(gradients, kMiB);
    const std::int64_t read = moved(Role::OptimizerState, Engine::DiskRead);
    EXPECT_GT(read, 5 * kMiB);
    // Once more than it is read: the initial values.
    EXPECT_EQ(moved(Role::OptimizerState, Engine::DiskWrite), read / scenario.steps * (scenario.steps + 1));
    // The product widens gradients before they leave.
    scenario.policy.options["variant"] = "deepspeed";
    EXPECT_EQ(moved(Role::Gradient, Engine::DiskWrite), precision == DType::F32 ? gradients : 2 * gradients);
  }
}

// Bytes of states of the first step's buckets, in forward order.
std::vector<std::int64_t> state_bytes(const Scenario& scenario) {
  const auto run = testing::run_null(scenario);
  const Graph& graph = run.scheduler->graph();
  Buckets buckets;
  buckets.follow(graph);
  std::vector<std::int64_t> bytes;
  for (const Bucket& bucket : buckets.step(0)) {
    bytes.push_back(0);
    for (ValueId read : graph.op(bucket.optimizer).reads)
      if (graph.tensor_of(read).role == Role::OptimizerState) bytes.back() += graph.value(read).bytes;
  }
  return bytes;
}

// Each step reads all states but those of the two buckets that the step before updated last.
TEST(TrainRunTest, StatesThatStayOnTheHostAreNotReadAgain) {
  for (const DType precision : {DType::F32, DType::BF16, DType::F16}) {
    Scenario scenario = small_gpt("mlp_offload");
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 64 * kMiB;
    scenario.workload.precision = precision;
    scenario.optimizer.clip_norm = precision == DType::BF16 ? 0.5 : 0;
    scenario.policy.options = {{"optimizer_states", "disk"}, {"buffers", "2"}};
    scenario.steps = 5;
    const auto moved = [&](Role role, Engine lane) {
      return expect_exact(scenario, false, lane, [role](const Training& training, ValueId value) {
        return training.graph().tensor_of(value).role == role;
      });
    };
    const auto bytes = state_bytes(scenario);
    const auto n = bytes.size();
    const std::int64_t all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
    EXPECT_EQ(moved(Role::OptimizerState, Engine::DiskRead),
              5 * all - 2 * (bytes[0] + bytes[1] + bytes[n - 2] + bytes[n - 1]));
    EXPECT_EQ(moved(Role::Gradient, Engine::DiskWrite), 0);
    // On a host that is short of room states leave that would have stayed.
    scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 5 * kMiB / 4;
    expect_exact(scenario);
  }
}

// A graph that grows by what is sampled: the live run decodes the tokens that whole forward passes give, and ends at
// the stop token.
TEST(TrainRunTest, DecodesUntilTheSampledTokenSaysSo) {
  set_thread_count(1);
  Scenario scenario = small_gpt("on_demand");
  scenario.workload.family = "gpt_decode";
  scenario.workload.batch = 1;
  scenario.workload.keys["prompt"] = 8;
  scenario.workload.keys["new_tokens"] = 12;
  scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = kMiB;
  const auto decode = [&] {
    Training training(scenario);
    HappensBefore checker(training.graph());
    training.run(&checker);
    EXPECT_EQ(checker.violation(), "");
    expect_replays(training, scenario);
    std::vector<std::int64_t> tokens;
    std::map<CommandId, OpId> ops;
    for (const auto& entry : training.log().entries()) {
      for (const Event& event : entry.batch.events)
        if (const auto op = ops.find(event.command); op != ops.end() && training.graph().op(op->second).grows)
          tokens.push_back(event.result);
      for (const Command& command : entry.commands)
        if (command.kind == CommandKind::Run) ops[command.id] = command.op;
    }
    return tokens;
  };
  const std::vector<std::int64_t> all = decode();
  EXPECT_EQ(all, decode_reference(scenario, *open_data(scenario)));
  EXPECT_EQ(all.size(), 12u);
  scenario.workload.keys["stop_token"] = all[5];
  const auto stop = std::find(all.begin(), all.end(), all[5]);
  EXPECT_EQ(decode(), std::vector<std::int64_t>(all.begin(), stop + 1));
}

TEST(TrainRunTest, AnInterruptDrainsAndEndsTheRun) {
  Scenario scenario = small_gpt("on_demand");
  scenario.steps = 1000;
  std::atomic<bool> interrupt{false};
  TrainOptions options;
  options.interrupt = &interrupt;
  Training training(scenario, options);
  interrupt = true;
  training.run();
  EXPECT_TRUE(training.interrupted());
  EXPECT_FALSE(training.executor().in_flight());
}

TEST(TrainRunTest, AWorkloadWithoutBodiesIsADeviceError) {
  Scenario scenario = testing::layers_scenario("on_demand", 256 * kMiB, 2, kMiB, 1000, 1000, 1000);
  scenario.workload.keys["vocabulary"] = 256;
  scenario.workload.keys["sequence"] = 8;
  Training training(scenario);
  EXPECT_THROW(training.run(), DeviceError);
}

}  // namespace
}  // namespace tandem
