// Training on a GPU: the same bits under every policy, the losses of plain training, and no growing memory. Without a
// GPU, what does not need one. The text is $TANDEM_TEST_TEXT, or the installed corpus.
#include "runtime/train.hpp"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/scheduler/happens_before.hpp"
#include "runtime/open_device.hpp"
#include "runtime/reference/reference.hpp"
#include "runtime/torch_setup.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/cuda/gpu.hpp"
#include "tests/cuda/plain_trainer.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kTightDevice = 112 * kMiB;
constexpr std::int64_t kForStates = 160 * kMiB;  // for a policy that keeps them on the device

// LibTorch takes another allocator only before it has used its own, which any test of this program may do.
class OpensTheGpuFirst final : public ::testing::Environment {
  void SetUp() override {
    if (!argument("ranks").empty() || has_gpu()) gpu();  // which CUDA is asked for first
  }
};
const auto* const kOpensTheGpuFirst = ::testing::AddGlobalTestEnvironment(new OpensTheGpuFirst);

Scenario gpt(const std::string& policy, DType precision) {
  Scenario s = gpt_on_gpu(policy, precision);
  s.steps = 10;
  return s;
}

// All that must give the bits of plain training.
std::vector<std::string> offloading() {
  std::vector<std::string> names = testing::exact_policies();
  std::erase(names, "resident");
  return names;
}

// Too small a device for the states, or, where a policy keeps them there, for what is saved: that goes to the disk.
void make_tight(Scenario& s) {
  const bool states_stay = s.policy.name == "ssdtrain";
  s.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = states_stay ? kForStates : kTightDevice;
  if (!states_stay) return;
  s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 512 * kMiB;
  s.policy.options["offload_blocks"] = "3";
}

std::vector<double> losses_of(const Training& training) {
  std::map<CommandId, OpId> ops;
  std::vector<double> losses;
  const RunRecord record = training.record();  // of a long run: its first steps, and the graph as it was then
  const Graph& graph = *record.ranks.front().graph;
  for (const auto& entry : record.log->entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto op = ops.find(event.command);
          op != ops.end() && graph.op(op->second).has_result && graph.op(op->second).phase == Phase::Forward)
        losses.push_back(std::bit_cast<double>(event.result));
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Run) ops[command.id] = command.op;
  }
  return losses;
}

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> parameters;
};

Outcome train_on_gpu(const Scenario& scenario, EventLog* watcher = nullptr) {
  TrainOptions options;
  options.device = gpu();
  Training training(scenario, options);
  HappensBefore checker(training.graph(), 0, watcher);
  training.run(&checker);
  EXPECT_EQ(checker.violation(), "");
  return {losses_of(training), training.parameters()};
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(b[i]));
  return largest;
}

std::string bits_of(float value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%a", static_cast<double>(value));
  return text;
}

// The first element that differs, and how many do: whole tensors on a page say nothing. Of each tensor, what is beyond
// whole rows of `row` elements is not looked at.
std::string difference(const Outcome& a, const Outcome& b, std::size_t row = 1) {
  std::string first;
  std::int64_t count = 0, all = 0;
  for (const auto& [name, values] : a.parameters) {
    const std::vector<float>& others = b.parameters.at(name);
    if (values.size() != others.size()) return name + ": sizes differ";
    for (std::size_t i = 0; i < values.size() / row * row; ++i, ++all) {
      if (std::bit_cast<std::uint32_t>(values[i]) == std::bit_cast<std::uint32_t>(others[i])) continue;
      if (count++ == 0)
        first = name + "[" + std::to_string(i) + "]: " + bits_of(values[i]) + " and " + bits_of(others[i]);
    }
  }
  if (count == 0) return "";
  return std::to_string(count) + " of " + std::to_string(all) + " parameters differ, first " + first;
}

class GpuTrainTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU on this machine";
  }
};

void expect_bits_of_resident(DType precision, std::int64_t state_bits, const std::vector<std::string>& policies) {
  Scenario resident = gpt("resident", precision);
  resident.optimizer.clip_norm = 0.5;
  resident.optimizer.initial_loss_scale = 0x1p24;  // fp16: the first steps are skipped
  resident.optimizer.state_bits = state_bits;
  const Outcome expected = train_on_gpu(resident);
  for (const std::string& policy : policies) {
    Scenario scenario = resident;
    scenario.policy.name = policy;
    make_tight(scenario);
    const Outcome outcome = train_on_gpu(scenario);
    EXPECT_EQ(outcome.losses, expected.losses) << policy << ", states of " << state_bits << " bits";
    EXPECT_EQ(difference(outcome, expected), "") << policy << ", states of " << state_bits << " bits";
  }
}

TEST_P(GpuTrainTest, EveryPolicyGivesTheBitsOfResident) { expect_bits_of_resident(GetParam(), 32, offloading()); }

// Updated on the CPU, on the device, and in parts on both.
TEST_P(GpuTrainTest, QuantisedStatesGiveTheBitsOfResident) {
  for (const std::int64_t state_bits : {8, 4})
    expect_bits_of_resident(GetParam(), state_bits, {"on_demand", "zero_offload", "split_update", "balanced"});
}

// Twice the same bits, and losses near those of the same training on the CPU.
TEST_P(GpuTrainTest, ApproximatePoliciesRepeatAndFollowTheCpu) {
  if (GetParam() == DType::F16) GTEST_SKIP() << "they train in fp32 and bf16";
  for (const std::string& policy : testing::approximate_policies()) {
    const Scenario scenario = gpt(policy, GetParam());
    const Outcome first = train_on_gpu(scenario), second = train_on_gpu(scenario);
    EXPECT_EQ(second.losses, first.losses) << policy;
    EXPECT_EQ(difference(second, first), "") << policy;
    Scenario on_cpu = scenario;
    on_cpu.machine.gpu = false;
    Training training(on_cpu);
    training.run();
    EXPECT_LT(largest_difference(first.losses, losses_of(training)), 0.02) << policy;
  }
}

// No width, sequence or batch is a multiple of a kernel's block: operands of odd ends, in every family.
Scenario odd(const std::string& family, DType precision) {
  Scenario s = gpt("zero_infinity", precision);
  WorkloadOptions& w = s.workload;
  w.family = family;
  w.keys["layers"] = 2, w.keys["hidden"] = 264, w.keys["heads"] = 3, w.keys["sequence"] = 33, w.batch = 3,
  w.keys["vocabulary"] = 1003;
  if (family == "mlp") w.keys["hidden"] = 65, w.keys["inputs"] = 64, w.keys["classes"] = 10, w.batch = 17;
  s.steps = 5;
  return s;
}

TEST_P(GpuTrainTest, OddSizesOfEveryFamilyFollowTheCpu) {
  for (const std::string family : {"gpt", "bert", "mlp"}) {
    if (family == "mlp" && GetParam() != DType::F32) continue;
    Scenario scenario = odd(family, GetParam());
    const Outcome offloaded = train_on_gpu(scenario);
    scenario.policy.name = "resident";
    const Outcome resident = train_on_gpu(scenario);
    EXPECT_EQ(offloaded.losses, resident.losses) << family;
    // In fp32 the CPU's updates are LibTorch's, which rounds what is left over of its vectors in another way.
    EXPECT_EQ(difference(offloaded, resident, GetParam() == DType::F32 ? 16 : 1), "") << family;
    scenario.machine.gpu = false;
    Training on_cpu(scenario);
    on_cpu.run();
    EXPECT_LT(largest_difference(resident.losses, losses_of(on_cpu)), 0.02) << family;
  }
}

// Needs no GPU: what the tests above train fits in their device memory, workspaces as on a GPU.
TEST(GpuTrainTestScenarios, Fit) {
  for (const DType precision : {DType::F32, DType::BF16, DType::F16})
    for (const std::string& policy : offloading()) {
      Scenario scenario = gpt(policy, precision);
      scenario.optimizer.clip_norm = 0.5;
      make_tight(scenario);
      for (const std::int64_t state_bits : {32, 8, 4}) {
        scenario.optimizer.state_bits = state_bits;
        EXPECT_EQ(testing::run_null(scenario).violation, "")
            << policy << ' ' << name_of(precision) << ' ' << state_bits;
      }
    }
}

// Within 1e-3, or within twice of what two plain runs differ by.
TEST_P(GpuTrainTest, LossesFollowPlainTraining) {
  if (GetParam() == DType::F16) GTEST_SKIP() << "plain training here does not scale the loss";
  Scenario scenario = gpt("balanced", GetParam());
  scenario.steps = 200;
  scenario.optimizer.learning_rate =
      1e-4;  // ten times as much lets any last bit grow: plain runs then differ by a fifth
  scenario.optimizer.weight_decay = 0.01;
  const Outcome ours = train_on_gpu(scenario);
  const auto data = open_data(scenario);
  const std::vector<double> fused = testing::plain_losses(scenario, *data, true, testing::PlainAdam::Fused);
  const std::vector<double> unfused = testing::plain_losses(scenario, *data, true, testing::PlainAdam::Unfused);
  const double between_plain = largest_difference(unfused, fused);
  const double to_plain = largest_difference(ours.losses, fused);
  RecordProperty("between_plain_runs", std::to_string(between_plain));
  RecordProperty("to_plain", std::to_string(to_plain));
  std::printf("largest relative difference over 200 steps: ours to plain %.2e, plain fused to unfused %.2e\n", to_plain,
              between_plain);
  EXPECT_LE(to_plain, std::max(1e-3, 2 * between_plain));
}

INSTANTIATE_TEST_SUITE_P(Precisions, GpuTrainTest, ::testing::Values(DType::F32, DType::BF16, DType::F16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// Samples the free memory of the GPU while a run goes on.
class FreeMemory final : public EventLog {
 public:
  void append(const EventBatch&) override {
    std::size_t free = 0, total = 0;
    ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    free_.push_back(free);
  }
  void append(std::span<const Command>) override {}
  // In the run's second half: recordings of launches are made in the first, as many as are ever kept.
  std::size_t growth() const {
    const auto [least, most] =
        std::minmax_element(free_.begin() + static_cast<std::ptrdiff_t>(free_.size() / 2), free_.end());
    return *most - *least;
  }
  // Where it changed: sample, of how many, and by how many bytes.
  std::string changes() const {
    std::string out;
    for (std::size_t i = 1; i < free_.size(); ++i)
      if (free_[i] != free_[i - 1])
        out += "sample " + std::to_string(i) + " of " + std::to_string(free_.size()) + ": " +
               std::to_string(static_cast<std::int64_t>(free_[i]) - static_cast<std::int64_t>(free_[i - 1])) +
               " free\n";
    return out;
  }

 private:
  std::vector<std::size_t> free_;
};

TEST(GpuMemoryTest, DoesNotGrowOnceItsRecordingsAreMade) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU on this machine";
  Scenario scenario = gpt("balanced", DType::BF16);
  scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = kTightDevice;
  scenario.steps = 6000;  // a recording is made where something comes again: the last of 512 late
  FreeMemory memory;
  train_on_gpu(scenario, &memory);
  EXPECT_EQ(memory.growth(), 0U) << memory.changes();
}

// A stand-in for a slower bus: streams are held by the GPU's clock, which agrees with its events to microseconds.
TEST(GpuThrottleTest, CopiesTakeAtLeastTheirTime) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU on this machine";
  constexpr double kRate = 500e6, kClocksNs = 50e3;  // bytes/s
  Scenario scenario = gpt("zero_offload", DType::BF16);
  scenario.limits.h2d_bytes_per_s = scenario.limits.d2h_bytes_per_s = kRate;
  TrainOptions options;
  options.device = gpu();
  Training training(scenario, options);
  training.run();
  std::map<CommandId, double> least_ns;
  for (const auto& entry : training.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto copy = least_ns.find(event.command); copy != least_ns.end()) {
        EXPECT_GE(static_cast<double>(event.finished.ns - event.started.ns), copy->second - kClocksNs);
      }
    for (const Command& command : entry.commands)
      if (command.lane.kind() == Engine::H2D || command.lane.kind() == Engine::D2H)
        least_ns[command.id] = static_cast<double>(command.part.bytes) / kRate * 1e9;
  }
  EXPECT_FALSE(least_ns.empty());
}

// The trainer that the GPU is compared with is the reference that the CPU is, where both can run.
TEST(PlainTrainer, IsTheReference) {
  Scenario scenario = gpt("resident", DType::F32);
  scenario.workload.keys["hidden"] = 64;
  scenario.workload.keys["sequence"] = 32;
  scenario.steps = 4;
  set_thread_count(1);
  make_torch_deterministic();
  const auto data = open_data(scenario);
  const ReferenceResult reference = train_reference(scenario, *data);
  std::vector<double> expected;
  for (const auto& step : reference.losses) expected.push_back(step.front());
  EXPECT_EQ(testing::plain_losses(scenario, *data, false, testing::PlainAdam::Fused), expected);
  EXPECT_LT(largest_difference(testing::plain_losses(scenario, *data, false, testing::PlainAdam::Unfused), expected),
            1e-5);
}

}  // namespace
}  // namespace tandem
