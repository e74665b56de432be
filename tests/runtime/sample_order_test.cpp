// A training step has the same samples in the same order, however they are cut into micro-batches and ranks.
#include <algorithm>
#include <set>

#include "tests/runtime/data_fixture.hpp"

namespace tandem {
namespace {

struct Cut {
  std::int64_t batch = 1, micro_batches = 1, ranks = 1;
};
constexpr std::int64_t kSamples = 12, kSequence = 24;
// All of twelve samples.
constexpr Cut kCuts[] = {{12, 1, 1}, {1, 12, 1}, {3, 4, 1}, {4, 3, 1}, {6, 1, 2}, {1, 1, 12}, {2, 3, 2}, {1, 4, 3}};

void PrintTo(const Cut& cut, std::ostream* out) {
  *out << cut.micro_batches << " of " << cut.batch << " on " << cut.ranks;
}

class SampleOrder : public DataTest {
 protected:
  SampleOrder() {
    scenario_.workload.keys["sequence"] = kSequence;
    std::string text;
    std::uint32_t state = 1;
    for (int i = 0; i < 5000; ++i) {
      state = state * 1664525 + 1013904223;  // Numerical Recipes' generator
      text += static_cast<char>('a' + (state >> 16) % 26);
    }
    write("text.txt", text);
    scenario_.data_text = "text.txt";
    scenario_.validation = {.every = 2, .batches = 12};
  }
  // All samples of a step, in order: of each, the numbers that `batch` writes for it.
  template <class Number, class BatchOf>
  static std::vector<Number> samples(const Cut& cut, std::int32_t step, bool held_out, std::int64_t numbers,
                                     const BatchOf& batch_of) {
    std::vector<Number> all;
    for (std::int32_t m = 0; m < cut.micro_batches; ++m)
      for (std::int32_t rank = 0; rank < cut.ranks; ++rank) {
        std::vector<Number> batch(static_cast<std::size_t>(cut.batch * numbers));
        batch_of(BatchKey{step, m, rank, held_out}, cut.batch, batch.data());
        all.insert(all.end(), batch.begin(), batch.end());
      }
    return all;
  }
  // The same of every kind of batch, joined.
  Tokens tokens(const Cut& cut, std::int32_t step, bool held_out) {
    scenario_.workload.devices = cut.ranks;
    scenario_.workload.family = "gpt";
    const auto data = open_data(scenario_);
    Tokens other(static_cast<std::size_t>(kSamples * kSequence));
    Tokens all = samples<std::int64_t>(cut, step, held_out, kSequence, [&](BatchKey key, std::int64_t n, auto* out) {
      data->next_token_batch(key, n, kSequence, out, other.data());
    });
    for (const bool targets : {false, true}) {
      const Tokens masked =
          samples<std::int64_t>(cut, step, held_out, kSequence, [&](BatchKey key, std::int64_t n, auto* out) {
            data->masked_token_batch(key, n, kSequence, 257, targets ? other.data() : out,
                                     targets ? out : other.data());
          });
      all.insert(all.end(), masked.begin(), masked.end());
    }
    return all;
  }
  std::vector<float> images(const Cut& cut, std::int32_t step, bool held_out) {
    scenario_.workload.devices = cut.ranks;
    scenario_.workload.family = "mlp";
    const auto data = open_data(scenario_);
    Tokens labels(static_cast<std::size_t>(kSamples));
    return samples<float>(cut, step, held_out, 64, [&](BatchKey key, std::int64_t n, float* out) {
      data->image_batch(key, n, 64, out, labels.data());
    });
  }
};

class SampleOrderTest : public SampleOrder, public ::testing::WithParamInterface<Cut> {};

TEST_P(SampleOrderTest, IsThatOfOneBatch) {
  for (const bool held_out : {false, true})
    for (const std::int32_t step : {0, 7}) {
      const Tokens whole = tokens(kCuts[0], step, held_out);
      EXPECT_EQ(tokens(GetParam(), step, held_out), whole);
      EXPECT_EQ(images(GetParam(), step, held_out), images(kCuts[0], step, held_out));
    }
  EXPECT_NE(tokens(GetParam(), 0, false), tokens(GetParam(), 1, false)) << "steps differ";
  EXPECT_EQ(tokens(GetParam(), 0, true), tokens(GetParam(), 1, true)) << "evaluations do not";
}

INSTANTIATE_TEST_SUITE_P(Cuts, SampleOrderTest, ::testing::ValuesIn(kCuts), [](const auto& test) {
  const Cut& cut = test.param;
  return std::to_string(cut.micro_batches) + "_of_" + std::to_string(cut.batch) + "_on_" + std::to_string(cut.ranks);
});

// No sample is dealt out twice: rows would be equal.
TEST_F(SampleOrder, SamplesOfAStepDiffer) {
  for (const Cut& cut : kCuts) {
    scenario_.workload.devices = cut.ranks;
    const auto data = open_data(scenario_);
    Tokens other(static_cast<std::size_t>(kSamples * kSequence));
    const Tokens all = samples<std::int64_t>(cut, 3, false, kSequence, [&](BatchKey key, std::int64_t n, auto* out) {
      data->next_token_batch(key, n, kSequence, out, other.data());
    });
    std::set<Tokens> rows;
    for (std::int64_t row = 0; row < kSamples; ++row)
      rows.insert(Tokens(all.begin() + row * kSequence, all.begin() + (row + 1) * kSequence));
    EXPECT_EQ(rows.size(), static_cast<std::size_t>(kSamples));
  }
}

// Where rows have masks of different sizes, the mean over a batch is not the mean over its micro-batches.
TEST_F(SampleOrder, EveryRowHasAsManyMasks) {
  const auto data = open_data(scenario_);
  for (const auto& [sequence, masks] :
       {std::pair{1, 1}, std::pair{4, 1}, std::pair{10, 2}, std::pair{24, 4}, std::pair{40, 6}, std::pair{100, 15}}) {
    constexpr std::int64_t kRows = 50;
    Tokens inputs(static_cast<std::size_t>(kRows * sequence)), targets(inputs.size());
    data->masked_token_batch({0, 0, 0}, kRows, sequence, 257, inputs.data(), targets.data());
    std::set<std::int64_t> places;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const auto first = inputs.begin() + row * sequence;
      EXPECT_EQ(std::count(first, first + sequence, 256), masks) << sequence;
      places.insert(std::find(first, first + sequence, 256) - first);
    }
    EXPECT_GT(static_cast<int>(places.size()), std::min(sequence, 8) / 2) << "masks lie anywhere";
  }
}

}  // namespace
}  // namespace tandem
