// What data-parallel ranks send compressed, for real: two and four processes against a plain loop over ranks in this
// one, which has the gradients that each of them came to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/layout.hpp"
#include "tests/runtime/compressed_runs.hpp"

namespace tandem::compressed_runs {
namespace {

// Of a block of numbers: the mean of their magnitudes, added up in the order in which a GPU's warp does.
float scale_of(const float* numbers, std::size_t count) {
  constexpr std::size_t kLanes = 32;
  float lanes[kLanes] = {};
  for (std::size_t i = 0; i < count; ++i) lanes[i % kLanes] += std::fabs(numbers[i]);
  for (std::size_t distance = kLanes / 2; distance > 0; distance /= 2)
    for (std::size_t i = 0; i < distance; ++i) lanes[i] += lanes[i + distance];
  return lanes[0] / static_cast<float>(count);
}

// What others see of numbers, of which the rest is kept.
Floats sent_of(const Way& w, const Floats& numbers, Floats& kept) {
  Floats all = numbers, sent(numbers.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] += w.feedback != 0 ? kept[i] : 0;
  const std::size_t block = w.compress == "one_bit" ? static_cast<std::size_t>(w.block) : 1;
  for (std::size_t first = 0; first < all.size(); first += block) {
    const std::size_t count = std::min(block, all.size() - first);
    const float scale = scale_of(&all[first], count);
    for (std::size_t i = first; i < first + count; ++i) {
      if (w.compress == "bf16") sent[i] = to_float(to_bfloat16(all[i]));
      if (w.compress == "fp16") sent[i] = to_float(to_float16(all[i]));
      if (w.compress == "one_bit") sent[i] = all[i] >= 0 ? scale : -scale;
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) kept[i] = all[i] - sent[i];
  return sent;
}

// A stage of all ranks, of which each takes one part.
struct Stage {
  std::vector<Floats> kept, kept_of_mean;
  Floats m;
};

// The mean that all ranks get of their numbers.
Floats mean_of(const Way& w, Stage& stage, const std::vector<Floats>& numbers) {
  std::vector<Floats> sent;
  for (std::size_t rank = 0; rank < numbers.size(); ++rank) sent.push_back(sent_of(w, numbers[rank], stage.kept[rank]));
  const std::size_t n = numbers.front().size(), ranks = numbers.size();
  const std::size_t unit = w.compress == "one_bit" ? static_cast<std::size_t>(w.block) : 2;
  const std::size_t part = (n + ranks * unit - 1) / (ranks * unit) * unit;
  Floats all;
  for (std::size_t own = 0; own < ranks; ++own) {
    Floats mean;
    for (std::size_t i = own * part; i < std::min(n, (own + 1) * part); ++i) {
      float sum = sent[0][i];
      for (std::size_t rank = 1; rank < ranks; ++rank) sum += sent[rank][i];
      mean.push_back(sum / static_cast<float>(ranks));
    }
    Floats kept(stage.kept_of_mean[own].begin(),
                stage.kept_of_mean[own].begin() + static_cast<std::ptrdiff_t>(mean.size()));
    for (const float number : sent_of(w, mean, kept)) all.push_back(number);
    std::copy(kept.begin(), kept.end(), stage.kept_of_mean[own].begin());
  }
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Way>& test) {
  const Way& w = test.param;
  return w.compress + "_" + w.precision + "_" + std::to_string(w.devices) + "x" + std::to_string(w.stages) + "_micro" +
         std::to_string(w.micro_batches) + (w.feedback != 0 ? "" : "_forgetful");
}

class CompressedRanks : public ::testing::TestWithParam<Way> {};

// Zeros where no field is: gradients have them there, and a momentum that is signs.
void zero_padding(Floats& numbers, const std::vector<std::pair<std::size_t, std::size_t>>& fields) {
  Floats clean(numbers.size(), 0);
  for (const auto& [first, count] : fields)
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(first), count,
                clean.begin() + static_cast<std::ptrdiff_t>(first));
  numbers = clean;
}

// Where the fields of a stage of the whole network lie in its bucket.
std::map<std::string, std::vector<std::pair<std::size_t, std::size_t>>> fields_of(const Way& w) {
  Scenario alone = scenario_of(w);
  alone.workload.devices = 1;
  alone.parallel.pipeline = 1;
  alone.steps = 1;
  Training training(alone);
  training.run();
  std::map<std::string, std::vector<std::pair<std::size_t, std::size_t>>> fields;
  for (TensorId id = 0; id < training.graph().tensor_count(); ++id) {
    const Tensor& tensor = training.graph().tensor(id);
    if (tensor.role != Role::Parameter) continue;
    for (const Field& field : tensor.layout->fields)
      fields[tensor.name.substr(0, tensor.name.find('.'))].emplace_back(
          static_cast<std::size_t>(field.offset) / sizeof(float), static_cast<std::size_t>(field.elements()));
  }
  return fields;
}

void expect_same_bits(const Floats& got, const Floats& expected, const std::string& what) {
  ASSERT_GE(got.size(), expected.size()) << what;
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), expected.size() * sizeof(float)), 0) << what;
}

void expect_reference(const Way& w, const std::vector<RankRun>& ranks, const std::vector<RankRun>& warm,
                      const std::string& name, const std::vector<std::pair<std::size_t, std::size_t>>& fields) {
  const bool signs = w.compress == "one_bit";
  const std::string compress = name + ".compress", decode = name + ".decode";
  const std::size_t steps = ranks.front().seen.at(compress).size();
  ASSERT_EQ(steps, static_cast<std::size_t>(signs ? w.steps - w.warmup : w.steps));
  const std::size_t n = ranks.front().seen.at(compress).front().size();
  Stage stage{std::vector(ranks.size(), Floats(n, 0)), std::vector(ranks.size(), Floats(n, 0)), {}};
  if (signs) stage.m = warm.front().states.at(name + ".adam_m");
  const auto beta1 = static_cast<float>(0.9), rest = static_cast<float>(1 - 0.9);
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<Floats> numbers;
    for (const RankRun& rank : ranks) {
      Floats& own = numbers.emplace_back(rank.seen.at(compress)[step]);
      for (std::size_t i = 0; signs && i < n; ++i) own[i] = beta1 * stage.m[i] + rest * own[i];
    }
    EXPECT_NE(numbers[0], numbers[1]) << "did they train on the same batch?";
    Floats mean = mean_of(w, stage, numbers);
    zero_padding(mean, fields);
    if (w.precision == "bf16" && !signs)
      for (float& number : mean) number = to_float(to_bfloat16(number));
    for (const RankRun& rank : ranks) expect_same_bits(rank.seen.at(decode)[step], mean, decode);
    if (signs) stage.m = mean;
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto& states = ranks[rank].states;
    if (signs) {
      expect_same_bits(states.at(name + ".adam_m"), stage.m, name + ".adam_m");
      expect_same_bits(states.at(name + ".adam_v"), warm.front().states.at(name + ".adam_v"), name + ".adam_v");
    }
    ASSERT_EQ(states.contains(name + ".kept"), w.feedback != 0);
    if (w.feedback == 0) continue;
    expect_same_bits(states.at(name + ".kept"), stage.kept[rank], name + ".kept");
    Floats& of_mean = stage.kept_of_mean[rank];
    of_mean.resize(states.at(name + ".kept_of_mean").size());
    expect_same_bits(states.at(name + ".kept_of_mean"), of_mean, name + ".kept_of_mean");
  }
}

TEST_P(CompressedRanks, AreAPlainLoopOverRanksToTheBit) {
  const Way w = GetParam();
  Way warm_up = w;
  warm_up.steps = w.warmup;
  const std::vector<RankRun> ranks = trained(w);
  const std::vector<RankRun> warm = w.compress == "one_bit" ? trained(warm_up) : std::vector<RankRun>{};
  const auto fields = fields_of(w);
  std::size_t stages = 0;
  for (const auto& [label, rows] : ranks.front().seen) {
    const std::size_t end = label.find(".compress");
    if (end == std::string::npos) continue;
    ++stages;
    const std::string name = label.substr(0, end);
    expect_reference(w, ranks, warm, name, fields.at(name));
  }
  EXPECT_EQ(stages, 4U);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    EXPECT_NE(ranks[rank].losses, ranks.front().losses);
    EXPECT_EQ(ranks[rank].parameters, ranks.front().parameters) << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CompressedRanks,
                         ::testing::Values(Way{.compress = "bf16"},
                                           Way{.compress = "fp16", .devices = 4, .micro_batches = 2},
                                           Way{.compress = "bf16", .precision = "bf16", .devices = 4},
                                           Way{.compress = "bf16", .feedback = 0}, Way{.compress = "one_bit"},
                                           Way{.compress = "one_bit", .devices = 4, .block = 1024, .micro_batches = 2},
                                           Way{.compress = "one_bit", .precision = "bf16", .devices = 3},
                                           Way{.compress = "one_bit", .feedback = 0}),
                         name_of);

// The mean of gradients of two ranks, and what they get of it in bf16: each step may drop 2^-9 of a number, twice; but
// all steps together no more than what is kept at the end. Sums of T steps in fp32 have T roundings each.
TEST(CompressedRanks, ErrorFeedbackKeepsSumsFromDrifting) {
  const Way w{.compress = "bf16", .steps = 12};
  const std::vector<RankRun> ranks = trained(w);
  double worst_step = 0;
  for (const auto& [label, rows] : ranks[0].seen) {
    if (!label.ends_with(".compress")) continue;
    const std::string name = label.substr(0, label.find('.'));
    const auto& others = ranks[1].seen.at(label);
    const auto& means = ranks[0].seen.at(name + ".decode");
    const std::size_t n = rows.front().size();
    const Floats &kept0 = ranks[0].states.at(name + ".kept"), &kept1 = ranks[1].states.at(name + ".kept");
    const Floats &mean0 = ranks[0].states.at(name + ".kept_of_mean"),
                 &mean1 = ranks[1].states.at(name + ".kept_of_mean");
    for (std::size_t i = 0; i < n; ++i) {
      double drift = 0, magnitudes = 0, largest = 0;
      for (std::size_t step = 0; step < rows.size(); ++step) {
        const double mean = (double{rows[step][i]} + others[step][i]) / 2;
        const double off = means[step][i] - mean;
        drift += off;
        magnitudes += std::fabs(rows[step][i]) + std::fabs(others[step][i]);
        largest = std::max(largest, std::fabs(double{rows[step][i]}) + std::fabs(double{others[step][i]}));
        if (mean != 0) worst_step = std::max(worst_step, std::fabs(off / mean));
      }
      const float of_mean = i < mean0.size() ? mean0[i] : mean1[i - mean0.size()];
      const double kept = (double{kept0[i]} + kept1[i]) / 2 + of_mean;
      EXPECT_NEAR(drift, -kept, 0x1p-22 * magnitudes) << name << ' ' << i;
      // A rank keeps half a unit of what it sends: 2^-9 of it, and what it sends is the gradient and as little again.
      EXPECT_LE(std::fabs(drift), 2 * 0x1p-9 * 1.01 * largest + 0x1p-22 * magnitudes) << name << ' ' << i;
    }
  }
  EXPECT_GT(worst_step, 0x1p-9) << "was anything compressed?";
}

// Two copies of two stages: what one rank of each of two copies comes to.
TEST(CompressedRanks, AreTheSameInAPipeline) {
  for (const char* compress : {"bf16", "one_bit"}) {
    Way w{.compress = compress, .steps = 4, .micro_batches = 2};
    const RankRun whole = trained(w).front();
    w.stages = 2;
    const std::vector<RankRun> ranks = trained(w);
    ASSERT_EQ(ranks.size(), 4U);
    std::size_t parameters = 0;
    for (const RankRun& rank : ranks)
      for (const auto& [name, values] : rank.parameters) {
        EXPECT_EQ(values, whole.parameters.at(name)) << name;
        ++parameters;
      }
    EXPECT_EQ(parameters, 2 * whole.parameters.size());
  }
}

// In 300 steps of two ranks, of which the first 45 are plain Adam's.
TEST(CompressedRanks, TrainAsPlainTrainingDoes) {
  constexpr std::size_t kSmooth = 50;
  const auto loss_of = [](const std::string& compress, std::int64_t feedback) {
    const Way w{.compress = compress, .steps = 300, .warmup = 45, .block = 1024, .feedback = feedback, .looks = 0};
    const Floats losses = trained(w).front().losses;
    EXPECT_EQ(losses.size(), 300U);
    double sum = 0;
    for (std::size_t i = losses.size() - kSmooth; i < losses.size(); ++i) sum += losses[i];
    return sum / kSmooth;
  };
  const double plain = loss_of("none", 1), half = loss_of("bf16", 1), signs = loss_of("one_bit", 1),
               forgetful = loss_of("one_bit", 0);
  std::printf("loss of the last %zu of 300 steps: plain %.4f, bf16 %.4f, one_bit %.4f, without error feedback %.4f\n",
              kSmooth, plain, half, signs, forgetful);
  EXPECT_NEAR(half, plain, 0.005 * plain);
  EXPECT_NEAR(signs, plain, 0.05 * plain);
  // By how much differs between processors, whose sums are rounded differently.
  EXPECT_GT(forgetful - plain, 2 * (signs - plain));
}

// The other processes of the tests above.
TEST(CompressedPeer, DISABLED_OtherSender) {
  TrainOptions options;
  options.rank = std::stoi(argument("rank"));
  options.meeting_file = argument("meeting-file");
  train_and_save(from_arguments(), options);
}

}  // namespace
}  // namespace tandem::compressed_runs
