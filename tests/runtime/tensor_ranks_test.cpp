// Divided layers, samples and experts for real: processes that each have a part train as those that have all of it, but
// for the order of sums; and to the bit as they did before.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/run/divided_weights.hpp"
#include "core/scenario/ranks.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

constexpr std::int64_t kBatch = 3;      // or less
constexpr std::int64_t kSequence = 32;  // or as a division says

struct Division {
  std::string family = "gpt", precision = "fp32", recompute = "none", optimizer = "sgd", kind = "ulysses",
              schedule = "1f1b", layout = "striped";
  std::int64_t tensor = 2, sequence = 1, stages = 1, devices = 1, micro_batches = 2, evaluates = 0, batch = kBatch,
               experts = 1, key_heads = 4, tokens = kSequence, width = 56;  // of an expert
  double clip_norm = 0;
};

std::vector<std::string> arguments_of(const Division& d) {
  return {"--family=" + d.family,
          "--precision=" + d.precision,
          "--recompute=" + d.recompute,
          "--optimizer=" + d.optimizer,
          "--kind=" + d.kind,
          "--schedule=" + d.schedule,
          "--layout=" + d.layout,
          "--tensor=" + std::to_string(d.tensor),
          "--sequence=" + std::to_string(d.sequence),
          "--stages=" + std::to_string(d.stages),
          "--devices=" + std::to_string(d.devices),
          "--micro=" + std::to_string(d.micro_batches),
          "--evaluates=" + std::to_string(d.evaluates),
          "--batch=" + std::to_string(d.batch),
          "--experts=" + std::to_string(d.experts),
          "--key_heads=" + std::to_string(d.key_heads),
          "--tokens=" + std::to_string(d.tokens),
          "--width=" + std::to_string(d.width),
          "--clip=" + std::to_string(d.clip_norm)};
}

Division from_arguments() {
  return {argument("family"),
          argument("precision"),
          argument("recompute"),
          argument("optimizer"),
          argument("kind"),
          argument("schedule"),
          argument("layout"),
          std::stoi(argument("tensor")),
          std::stoi(argument("sequence")),
          std::stoi(argument("stages")),
          std::stoi(argument("devices")),
          std::stoi(argument("micro")),
          std::stoi(argument("evaluates")),
          std::stoi(argument("batch")),
          std::stoi(argument("experts")),
          std::stoi(argument("key_heads")),
          std::stoi(argument("tokens")),
          std::stoi(argument("width")),
          std::stod(argument("clip"))};
}

constexpr std::int64_t kVocabulary = 250, kHidden = 64, kFeedForward = 4 * kHidden, kLayers = 4;

Scenario scenario_of(const Division& d) {
  Scenario s = testing::gpt_scenario("resident", 256 * kMiB);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.workload.family = d.family;
  KeyValues& keys = s.workload.keys;
  if (d.family == "llama") {
    keys = find_workload("llama")->keys->small_instance();
    keys["layers"] = kLayers, keys["hidden"] = kHidden, keys["heads"] = 8, keys["key_heads"] = d.key_heads;
    keys["feed_forward"] = kFeedForward;
    keys["qkv_bias"] = true;
  }
  if (d.family == "moe") {
    keys = find_workload("moe")->keys->small_instance();
    keys["experts"] = 4, keys["feed_forward"] = d.width;
  }
  if (d.family == "bert" || d.family == "t5") {
    keys = find_workload(d.family)->keys->small_instance();
    keys["heads"] = 4;
  }
  if (d.family != "t5" && d.family != "moe")
    keys["vocabulary"] = kVocabulary, keys["vocabulary_multiple"] = 64;  // the last six are nobody's
  if (d.family == "gpt" || d.family == "llama") keys["tied_embedding"] = d.family == "gpt", keys["sequence"] = d.tokens;
  s.workload.precision = d.precision == "bf16" ? DType::BF16 : d.precision == "fp16" ? DType::F16 : DType::F32;
  s.workload.recompute = d.recompute;
  s.workload.batch = d.batch;
  s.workload.micro_batches = d.micro_batches;
  s.workload.devices = d.devices;
  s.workload.tensor = d.tensor;
  s.workload.parallel["sequence"] = d.sequence;
  s.workload.parallel["sequence_kind"] = d.kind;
  s.workload.parallel["ring_layout"] = d.layout;
  s.workload.parallel["expert"] = d.experts;
  s.parallel = {.pipeline = d.stages, .chunks = 1, .schedule = d.schedule};
  s.optimizer.name = d.optimizer;
  s.optimizer.learning_rate = d.optimizer == "sgd" ? 0.1 : 1e-3;
  s.optimizer.clip_norm = d.clip_norm;
  s.validation.every = static_cast<std::int32_t>(d.evaluates);
  if (d.evaluates > 0) s.validation.batches = 1;
  s.seed = 5;
  return s;
}

// Of all ranks, of which this process is the leading one.
std::vector<RankBits> trained(const Division& d) {
  return train_ranks(scenario_of(d), "*DISABLED_OtherPart*", arguments_of(d));
}

std::vector<float> floats_of(const std::string& text) {
  std::vector<float> out;
  std::istringstream in(text);
  for (std::string word; in >> word;) out.push_back(std::strtof(word.c_str(), nullptr));
  return out;
}

// Of the leading rank, by micro-batch and step: the mean of those that have tokens of its samples.
std::vector<double> losses_of(const Scenario& scenario, const std::vector<RankBits>& all) {
  std::vector<double> sums;
  const std::vector<Rank> members = sequence_group(scenario, leading_rank(scenario)).members;
  for (const Rank rank : members) {
    std::istringstream in(all[static_cast<std::size_t>(rank)].at("loss"));
    std::size_t i = 0;
    for (std::int64_t bits = 0; in >> bits; ++i) {
      if (i == sums.size()) sums.push_back(0);
      sums[i] += std::bit_cast<double>(bits);
    }
  }
  for (double& sum : sums) sum /= static_cast<double>(members.size());
  return sums;
}

using Weights = std::map<std::string, std::vector<float>>;

// Whole weights of the ranks' parts; of what several ranks have, each must have the same bits.
Weights put_together(const Scenario& scenario, const std::vector<RankBits>& all) {
  const WeightParts parts = parts_of(scenario);
  Weights whole;
  for (Rank rank = 0; rank < rank_count(scenario); ++rank) {
    const RankPlace at = place_of(scenario, rank);
    const auto own = at.data % expert_ranks(scenario) * scenario.workload.tensor + at.tensor;
    for (const auto& [name, text] : all[static_cast<std::size_t>(rank)]) {
      if (name == "loss") continue;
      const WeightPart& part = parts.at(name);
      std::vector<float>& to = whole[part.name];
      to.resize(static_cast<std::size_t>(part.whole.elements()), std::numeric_limits<float>::quiet_NaN());
      const std::vector<float> from = floats_of(text);
      for (std::size_t i = 0; i < from.size(); ++i) {
        const std::int64_t place = part.place(static_cast<std::int64_t>(i), own);
        if (place >= part.whole.elements()) {
          EXPECT_EQ(from[i], 0) << name << " behind the rows of " << part.name;
          continue;
        }
        float& number = to[static_cast<std::size_t>(place)];
        if (!std::isnan(number)) {
          EXPECT_EQ(number, from[i]) << "ranks differ in " << name;
        }
        number = from[i];
      }
    }
  }
  return whole;
}

double norm(const std::vector<float>& of, const std::vector<float>& from) {
  EXPECT_EQ(of.size(), from.size());
  double sum = 0;
  for (std::size_t i = 0; i < of.size(); ++i) sum += (double{of[i]} - from[i]) * (double{of[i]} - from[i]);
  return std::sqrt(sum);
}

constexpr std::int64_t kMostTokens = 42;  // of a sample, of all divisions below

// A number of either run is off by at most (summands) epsilon of the magnitudes that a sum adds up, and goes through a
// block's four products forward, and backward twice as many, and those of both ends. The longest sums are over all
// tokens of a micro-batch or over the widest layer. A step's update is its gradient, times the rate, so that the change
// of a weight is off by as much, step by step; and it is rounded once a step itself.
double relative_bound() {
  constexpr std::int64_t kLongestSum = std::max(kBatch * kMostTokens, kFeedForward);
  constexpr std::int64_t kProducts = 3 * (4 * kLayers + 2);
  constexpr double kEpsilon = std::numeric_limits<float>::epsilon() / 2;
  return 2 * kEpsilon * kLongestSum * kProducts;
}

void PrintTo(const Division& d, std::ostream* out) {
  for (const std::string& argument : arguments_of(d)) *out << argument << ' ';
}

class TensorRanks : public ::testing::TestWithParam<Division> {};

TEST_P(TensorRanks, TrainAsOneDeviceDoes) {
  const Division d = GetParam();
  Division one = d;
  one.tensor = one.sequence = one.stages = one.experts = 1;
  one.kind = "ulysses", one.layout = "striped";
  const Scenario scenario = scenario_of(d), alone = scenario_of(one);
  const std::vector<RankBits> all = trained(d), reference = trained(one);
  const double bound = relative_bound();

  const std::vector<double> losses = losses_of(scenario, all), expected = losses_of(alone, reference);
  ASSERT_EQ(losses.size(), expected.size());
  ASSERT_GE(losses.size(), 3U);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], bound * expected[i]) << i;
  EXPECT_NE(losses.front(), losses.back());

  const Weights weights = put_together(scenario, all), whole = put_together(alone, reference);
  Division none = one;
  none.devices = 1;
  Scenario untrained = scenario_of(none);  // the same weights before any step
  untrained.optimizer.learning_rate = 0;
  Training before(untrained);
  before.run();
  const Weights first = put_together(untrained, {bits_of(before)});
  ASSERT_EQ(weights.size(), whole.size());
  double changed = 0;
  for (const auto& [name, numbers] : whole) changed = std::max(changed, norm(numbers, first.at(name)));
  EXPECT_GT(changed, 0);
  for (const auto& [name, numbers] : whole) {
    SCOPED_TRACE(name);
    ASSERT_EQ(weights.count(name), 1U);
    const double magnitude = norm(numbers, std::vector<float>(numbers.size()));
    const double rounding = double{std::numeric_limits<float>::epsilon()} * scenario.steps * magnitude;
    // A change that is much less than others is what is left where larger gradients cancel: theirs is its error.
    const double change = std::max(norm(numbers, first.at(name)), 1e-2 * changed);
    EXPECT_LE(norm(weights.at(name), numbers), bound * change + rounding);
  }
}

const Division kDivisions[] = {
    {},
    {.tensor = 4, .clip_norm = 0.05},
    {.family = "llama", .recompute = "block", .clip_norm = 0.05},
    {.family = "llama", .tensor = 4},
    {.family = "llama", .key_heads = 1},
    {.family = "bert"},
    {.family = "t5"},
    {.devices = 2, .micro_batches = 1, .clip_norm = 0.05},
    {.stages = 2, .micro_batches = 4, .clip_norm = 0.05},
    {.kind = "megatron", .tensor = 4, .batch = 1, .clip_norm = 0.05},
    {.kind = "megatron", .tensor = 4, .batch = 2},  // two ranks a text
    {.family = "llama", .recompute = "block", .kind = "megatron", .devices = 2, .micro_batches = 1},
    {.kind = "megatron", .stages = 2, .micro_batches = 4, .batch = 2, .clip_norm = 0.05},
    {.family = "moe", .clip_norm = 0.05},
    {.family = "moe", .recompute = "block", .devices = 2, .micro_batches = 1},
    {.family = "moe", .devices = 2, .experts = 2},
    {.family = "moe", .recompute = "block", .devices = 2, .micro_batches = 1, .experts = 2, .clip_norm = 0.05},
    {.family = "moe", .devices = 2, .experts = 2, .width = 57, .clip_norm = 0.05},  // experts that are whole
    {.family = "moe", .tensor = 1, .devices = 2, .experts = 2},
    {.family = "moe", .tensor = 1, .devices = 4, .micro_batches = 1, .experts = 2},
    {.family = "moe", .tensor = 1, .devices = 4, .experts = 2, .clip_norm = 0.05},
    {.tensor = 1, .sequence = 2, .clip_norm = 0.05},
    {.family = "llama", .recompute = "block", .tensor = 1, .sequence = 4},
    {.tensor = 1, .sequence = 2, .devices = 2, .micro_batches = 1},
    {.family = "llama",
     .schedule = "zero_bubble",
     .tensor = 1,
     .sequence = 2,
     .stages = 2,
     .micro_batches = 4,
     .clip_norm = 0.05},
    {.kind = "ring", .tensor = 1, .sequence = 2, .tokens = kMostTokens, .clip_norm = 0.05},
    {.kind = "ring", .tensor = 1, .sequence = 4, .micro_batches = 3, .batch = 1, .tokens = 36},
    {.kind = "ring", .layout = "contiguous", .tensor = 1, .sequence = 4, .tokens = 36, .clip_norm = 0.05},
    {.family = "llama", .recompute = "block", .kind = "ring", .tensor = 1, .sequence = 4, .key_heads = 2, .tokens = 36},
    {.family = "llama",
     .kind = "ring",
     .layout = "contiguous",
     .tensor = 1,
     .sequence = 2,
     .batch = 1,
     .key_heads = 1,
     .tokens = kMostTokens},
    {.kind = "ring", .tensor = 1, .sequence = 2, .devices = 2, .micro_batches = 1, .tokens = 38},
    {.sequence = 2, .clip_norm = 0.05},
    {.family = "llama", .recompute = "block", .kind = "ring", .sequence = 2, .key_heads = 2, .tokens = 36},
    {.family = "llama",
     .recompute = "block",
     .kind = "ring",
     .layout = "contiguous",
     .tensor = 1,
     .sequence = 2,
     .devices = 2,
     .batch = 1},
    {.family = "llama",
     .kind = "ring",
     .schedule = "zero_bubble",
     .tensor = 1,
     .sequence = 2,
     .stages = 2,
     .micro_batches = 4,
     .clip_norm = 0.05},
};

std::string name_of_division(const ::testing::TestParamInfo<Division>& test) {
  const Division& d = test.param;
  return d.family + "_" + std::to_string(d.tensor) + "x" + std::to_string(d.sequence) + "x" + std::to_string(d.stages) +
         "x" + std::to_string(d.devices) + "_" + d.precision + "_" + d.recompute + "_" + d.kind +
         (d.kind == "ring" ? "_" + d.layout : "") + std::to_string(d.experts) + "_" + std::to_string(d.key_heads) +
         (d.tokens != kSequence ? "_" + std::to_string(d.tokens) : "") + (d.clip_norm > 0 ? "_clipped" : "");
}

INSTANTIATE_TEST_SUITE_P(All, TensorRanks, ::testing::ValuesIn(kDivisions), name_of_division);

class TensorRepeats : public ::testing::TestWithParam<Division> {};

// Sums go the same way each time.
TEST_P(TensorRepeats, ToTheBit) { EXPECT_EQ(trained(GetParam()), trained(GetParam())); }

const Division kRepeated[] = {
    {.optimizer = "adamw", .tensor = 4, .evaluates = 1, .clip_norm = 0.05},
    {.precision = "bf16", .optimizer = "adamw"},
    {.family = "llama", .precision = "fp16", .optimizer = "adamw"},
    {.precision = "bf16", .optimizer = "adamw", .tensor = 1, .sequence = 4, .evaluates = 1},
    {.precision = "bf16", .optimizer = "adamw", .kind = "ring", .tensor = 1, .sequence = 4, .evaluates = 1},
    {.family = "llama",
     .precision = "fp16",
     .optimizer = "adamw",
     .kind = "ring",
     .layout = "contiguous",
     .tensor = 1,
     .sequence = 2,
     .key_heads = 2}};
INSTANTIATE_TEST_SUITE_P(All, TensorRepeats, ::testing::ValuesIn(kRepeated), name_of_division);

// The other processes of the tests above.
TEST(TensorRanksPeer, DISABLED_OtherPart) { train_as_told(scenario_of(from_arguments())); }

}  // namespace
}  // namespace tandem
