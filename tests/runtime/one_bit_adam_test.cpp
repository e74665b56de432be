// 1-bit Adam live: the warm-up is plain Adam, the step after it is what the method says, and a run's losses stay near
// plain training's, which they do not without error feedback.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "analysis/analysis.hpp"
#include "core/formats/layout.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/checked_run.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario small_gpt(const std::string& policy, std::int32_t steps) {
  Scenario s = testing::gpt_scenario(policy, 64 * kMiB, /*layers=*/2);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 64 * kMiB;
  s.optimizer.weight_decay = 0.1;
  s.steps = steps;
  s.seed = 7;
  return s;
}

std::vector<double> losses_of(const Scenario& scenario) {
  Training training(scenario);
  run_checked(training);
  const RunRecord record = training.record();
  return analyse(record).loss;
}

// Of all that lasts.
std::map<std::string, std::vector<std::byte>> state_of(const Scenario& scenario) {
  Training training(scenario);
  run_checked(training);
  std::map<std::string, std::vector<std::byte>> state;
  for (TensorId id = 0; id < training.graph().tensor_count(); ++id)
    if (training.graph().tensor(id).persistent) state[training.graph().tensor(id).name] = training.latest(id);
  return state;
}

TEST(OneBitAdam, TheWarmUpIsPlainAdamToTheBit) {
  for (const DType precision : {DType::F32, DType::BF16}) {
    Scenario plain = small_gpt("resident", 5), scenario = small_gpt("one_bit_adam", 5);
    plain.workload.precision = scenario.workload.precision = precision;
    scenario.policy.options["warmup_steps"] = "5";
    EXPECT_EQ(state_of(scenario), state_of(plain)) << name_of(precision);
    scenario.policy.options["warmup_steps"] = "2";
    const std::vector<double> losses = losses_of(scenario), expected = losses_of(plain);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(losses[i] == expected[i], i < 3) << i;
  }
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes, const Field& field) {
  std::vector<float> numbers(static_cast<std::size_t>(field.elements()));
  std::memcpy(numbers.data(), bytes.data() + field.offset, numbers.size() * sizeof(float));
  return numbers;
}

// The third step's gradient follows from the first moments before and after it in plain training.
TEST(OneBitAdam, TheStepAfterTheWarmUpIsWhatTheMethodSays) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
  constexpr std::size_t kBlock = 64;
  Scenario scenario = small_gpt("one_bit_adam", 3);
  scenario.policy.options = {{"warmup_steps", "2"}, {"block", "64"}};
  Training training(scenario);
  run_checked(training);
  const auto before = state_of(small_gpt("resident", 2)), after = state_of(small_gpt("resident", 3));
  std::map<std::string, TensorId> ids;
  for (TensorId id = 0; id < training.graph().tensor_count(); ++id) ids[training.graph().tensor(id).name] = id;
  for (const Field& field : training.graph().tensor(ids.at("block1.parameter")).layout->fields) {
    const auto old = [&](const char* name) { return floats_of(before.at(std::string("block1.") + name), field); };
    const auto now = [&](const char* name) {
      return floats_of(training.latest(ids.at(std::string("block1.") + name)), field);
    };
    const std::vector<float> m = old("adam_m"), v = old("adam_v"), parameter = old("parameter");
    const std::vector<float> next_m = floats_of(after.at("block1.adam_m"), field);  // the momentum to send
    EXPECT_EQ(now("adam_v"), v) << "frozen";
    const std::vector<float> kept = now("adam_m"), updated = now("parameter");
    const double decay = field.shape.size() == 1 && scenario.optimizer.decay == "matrices"
                             ? 0
                             : scenario.optimizer.learning_rate * scenario.optimizer.weight_decay;
    for (std::size_t first = 0; first < m.size(); first += kBlock) {
      const std::size_t end = std::min(first + kBlock, m.size());
      double scale = 0;
      for (std::size_t i = first; i < end; ++i) scale += std::fabs(next_m[i]) / static_cast<double>(end - first);
      for (std::size_t i = first; i < end; ++i) {
        if (std::fabs(next_m[i]) < 1e-6 * scale) continue;  // whose sign is rounding's
        const double sent = std::copysign(scale, next_m[i]);
        EXPECT_NEAR(kept[i], next_m[i] - (1 - kBeta1) * sent, 1e-5 * scale) << field.name << i;
        const double root = std::sqrt(v[i] / (1 - kBeta2 * kBeta2));
        const double change =
            v[i] == 0 ? 0 : scenario.optimizer.learning_rate / (1 - kBeta1 * kBeta1 * kBeta1) * sent / (root + 1e-8);
        EXPECT_NEAR(updated[i], parameter[i] * (1 - decay) - change, 1e-6 + 1e-4 * std::fabs(change))
            << field.name << i;
      }
    }
  }
}

// Everything else that may be asked of a step is on.
TEST(OneBitAdam, ClippedAccumulatedAndRecomputedStepsTrain) {
  for (const DType precision : {DType::F32, DType::BF16}) {
    Scenario scenario = small_gpt("one_bit_adam", 40), plain = small_gpt("resident", 40);
    for (Scenario* s : {&scenario, &plain}) {
      s->workload.precision = precision;
      s->workload.micro_batches = 2;
      s->workload.recompute = "block";
      s->optimizer.clip_norm = 0.5;
      s->optimizer.decay = "matrices";
    }
    scenario.policy.options["warmup_steps"] = "20";
    const std::vector<double> losses = losses_of(scenario), expected = losses_of(plain);
    EXPECT_EQ(losses[20], expected[20]);
    EXPECT_NEAR(losses.back(), expected.back(), 0.1 * expected.back()) << name_of(precision);
    EXPECT_EQ(losses_of(scenario), losses);
  }
}

double mean_of_last(const std::vector<double>& losses, std::size_t count) {
  double sum = 0;
  for (std::size_t i = losses.size() - count; i < losses.size(); ++i) sum += losses[i];
  return sum / static_cast<double>(count);
}

// scenarios/one_bit_adam_corpus.yaml, another seed. docs/systems.md has the table of such runs.
TEST(OneBitAdam, TrainsAsPlainTrainingBecauseOfErrorFeedback) {
  Scenario plain = small_gpt("resident", 300);
  plain.workload.keys["hidden"] = 128;
  plain.workload.keys["sequence"] = 64;
  plain.workload.batch = 8;
  plain.optimizer.weight_decay = 0;
  plain.optimizer.learning_rate = 2e-3;
  plain.optimizer.schedule = "cosine";
  plain.optimizer.warmup_steps = 20;
  plain.optimizer.clip_norm = 1;
  Scenario scenario = plain, forgetful = plain;
  scenario.policy = {"one_bit_adam", {}};
  forgetful.policy = {"one_bit_adam", {{"error_feedback", "false"}}};
  constexpr std::size_t kSmooth = 50;
  const double exact = mean_of_last(losses_of(plain), kSmooth), ours = mean_of_last(losses_of(scenario), kSmooth);
  const double without = mean_of_last(losses_of(forgetful), kSmooth);
  std::printf("loss of the last %zu of 300 steps: plain %.4f, one_bit_adam %.4f, without error feedback %.4f\n",
              kSmooth, exact, ours, without);
  EXPECT_LT(ours, exact + 0.02);
  EXPECT_GT(without, ours + 0.1);
}

}  // namespace
}  // namespace tandem
