// Batches: the same for the same key, real bytes of real files, and clear refusals of malformed ones.
#include "runtime/data.hpp"

#include <algorithm>
#include <set>

#include "core/base/errors.hpp"
#include "tests/runtime/data_fixture.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// Big-endian, as IDX files are.
std::string big_endian(std::initializer_list<std::uint32_t> numbers) {
  std::string out;
  for (std::uint32_t n : numbers)
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(n >> shift & 0xFF));
  return out;
}

TEST_F(DataTest, RowsAreStretchesOfTheTextAndTargetsItsNextBytes) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  write("text.txt", text);
  scenario_.data_text = "text.txt";
  const auto data = open_data(scenario_);
  std::set<std::string> rows;
  for (std::int32_t step = 0; step < 50; ++step) {
    const Batch batch = next_tokens(*data, {step, 0, 0}, 2, 8);
    for (std::size_t row = 0; row < 2; ++row) {
      const auto first = batch.inputs.begin() + static_cast<std::ptrdiff_t>(row * 8);
      std::string stretch(first, first + 8);
      stretch.push_back(static_cast<char>(batch.targets[row * 8 + 7]));
      EXPECT_THAT(text, HasSubstr(stretch));
      rows.insert(stretch);
      for (std::size_t i = 0; i + 1 < 8; ++i) EXPECT_EQ(batch.targets[row * 8 + i], batch.inputs[row * 8 + i + 1]);
    }
  }
  EXPECT_GT(rows.size(), 20U) << "100 rows from 35 places";
}

TEST_F(DataTest, ABatchDependsOnItsKeyAndTheSeedOnly) {
  const auto data = open_data(scenario_);
  const Batch batch = next_tokens(*data, {5, 1, 0}, 4, 8);
  EXPECT_EQ(next_tokens(*open_data(scenario_), {5, 1, 0}, 4, 8), batch);
  EXPECT_NE(next_tokens(*data, {6, 1, 0}, 4, 8), batch);
  EXPECT_NE(next_tokens(*data, {5, 0, 0}, 4, 8), batch);
  EXPECT_NE(next_tokens(*data, {5, 1, 1}, 4, 8), batch);
  scenario_.seed = 4;
  EXPECT_NE(next_tokens(*open_data(scenario_), {5, 1, 0}, 4, 8), batch);
}

TEST_F(DataTest, TwoRanksSeeTogetherWhatOneWithTheDoubleBatchSees) {
  const auto data = open_data(scenario_);
  Batch both = next_tokens(*data, {2, 0, 0}, 3, 8);
  const Batch second = next_tokens(*data, {2, 0, 1}, 3, 8);
  both.inputs.insert(both.inputs.end(), second.inputs.begin(), second.inputs.end());
  EXPECT_EQ(next_tokens(*data, {2, 0, 0}, 6, 8).inputs, both.inputs);
}

TEST_F(DataTest, HeldOutTextIsTheLastPartAndInNoTrainingBatch) {
  std::string text;
  for (int i = 0; i < 100; ++i) text.push_back(static_cast<char>(i));
  write("text.txt", text);
  scenario_.data_text = "text.txt";
  scenario_.validation = {.every = 5, .batches = 2, .fraction = 0.25};
  const auto data = open_data(scenario_);
  std::set<std::int64_t> training, held_out;
  for (std::int32_t i = 0; i < 100; ++i) {
    for (const bool validates : {false, true}) {
      const Batch batch = next_tokens(*data, {validates ? 7 : i, validates ? i : 0, 0, validates}, 4, 8);
      auto& seen = validates ? held_out : training;
      seen.insert(batch.inputs.begin(), batch.inputs.end());
      seen.insert(batch.targets.begin(), batch.targets.end());
    }
  }
  EXPECT_EQ(*training.begin(), 0);
  EXPECT_EQ(*training.rbegin(), 74);
  EXPECT_EQ(*held_out.begin(), 75);
  EXPECT_EQ(*held_out.rbegin(), 99);
}

TEST_F(DataTest, EveryEvaluationSeesTheSameBatches) {
  scenario_.validation = {.every = 5};
  const auto data = open_data(scenario_);
  const Batch batch = next_tokens(*data, {4, 1, 0, true}, 4, 8);
  EXPECT_EQ(next_tokens(*data, {9, 1, 0, true}, 4, 8), batch);
  EXPECT_NE(next_tokens(*data, {4, 0, 0, true}, 4, 8), batch);
  EXPECT_NE(next_tokens(*data, {4, 1, 1, true}, 4, 8), batch);
}

TEST_F(DataTest, TextsTooShortToHoldOutARowAreRefused) {
  write("text.txt", std::string(40, 'x'));
  scenario_.data_text = "text.txt";
  scenario_.validation = {.every = 5, .batches = 1, .fraction = 0.2};
  EXPECT_THAT(refusal(), HasSubstr("validation.fraction: holds out 8 of the 40 bytes"));
  EXPECT_THAT(refusal(), HasSubstr("allowed: at least sequence + 1 = 9"));
  scenario_.validation.fraction = 0.8;
  EXPECT_THAT(refusal(), HasSubstr("validation.fraction: leaves for training 8 of the 40 bytes"));
  scenario_.validation.every = 0;
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(DataTest, MaskedTokensHaveTargetsAndOthersAreIgnored) {
  constexpr std::int64_t kBatch = 200, kSequence = 100, kVocabulary = 257;
  const auto data = open_data(scenario_);
  Tokens inputs(kBatch * kSequence), targets(kBatch * kSequence);
  data->masked_token_batch({0, 0, 0}, kBatch, kSequence, kVocabulary, inputs.data(), targets.data());
  std::int64_t masked = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_masked = inputs[i] == kVocabulary - 1;
    masked += is_masked;
    EXPECT_EQ(targets[i] != -100, is_masked);
    EXPECT_LT(targets[i], kVocabulary - 1);
  }
  // 20,000 draws at 15%: a standard deviation is 50.
  EXPECT_NEAR(static_cast<double>(masked), 3000, 300);
}

TEST_F(DataTest, EveryRowHasAMaskedToken) {
  Tokens inputs(300), targets(300);
  open_data(scenario_)->masked_token_batch({0, 0, 0}, 300, 1, 257, inputs.data(), targets.data());
  EXPECT_THAT(inputs, ::testing::Each(256));
}

TEST_F(DataTest, TheInstalledDigitsAreThere) {
  scenario_.workload.family = "mlp";
  const auto data = open_data(scenario_);
  constexpr std::int64_t kBatch = 500;
  std::vector<float> images(kBatch * 64);
  Tokens labels(kBatch);
  data->image_batch({0, 0, 0}, kBatch, 64, images.data(), labels.data());
  EXPECT_EQ(*std::max_element(images.begin(), images.end()), 1.0F);
  EXPECT_EQ(*std::min_element(images.begin(), images.end()), 0.0F);
  EXPECT_EQ(std::set<std::int64_t>(labels.begin(), labels.end()).size(), 10U);
}

TEST_F(DataTest, IdxFilesAreRead) {
  scenario_.workload.family = "mlp";
  scenario_.workload.keys["inputs"] = 6;
  scenario_.data_images = ".";
  write("train-images-idx3-ubyte",
        big_endian({0x803, 2, 2, 3}) + std::string("\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff", 12));
  write("train-labels-idx1-ubyte", big_endian({0x801, 2}) + std::string("\x04\x07", 2));
  const auto data = open_data(scenario_);
  std::vector<float> images(60);
  Tokens labels(10);
  data->image_batch({0, 0, 0}, 10, 6, images.data(), labels.data());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    EXPECT_THAT(labels[i], ::testing::AnyOf(4, 7));
    for (std::size_t j = 0; j < 6; ++j) EXPECT_EQ(images[i * 6 + j], labels[i] == 4 ? 0.0F : 1.0F);
  }
}

TEST_F(DataTest, HeldOutImagesAreTheLastOnes) {
  scenario_.workload.family = "mlp";
  scenario_.workload.keys["inputs"] = 1;
  scenario_.data_images = ".";
  write("train-images-idx3-ubyte", big_endian({0x803, 4, 1, 1}) + "abcd");
  write("train-labels-idx1-ubyte", big_endian({0x801, 4}) + std::string("\x00\x01\x02\x03", 4));
  scenario_.validation = {.every = 5, .batches = 1, .fraction = 0.5};
  const auto data = open_data(scenario_);
  for (const bool held_out : {false, true}) {
    std::vector<float> images(50);
    Tokens labels(50);
    data->image_batch({0, 0, 0, held_out}, 50, 1, images.data(), labels.data());
    EXPECT_EQ(std::set<std::int64_t>(labels.begin(), labels.end()),
              held_out ? (std::set<std::int64_t>{2, 3}) : (std::set<std::int64_t>{0, 1}));
  }
  scenario_.validation.fraction = 0.2;
  EXPECT_THAT(refusal(), HasSubstr("validation.fraction: holds out 0 of the 4 images"));
}

TEST_F(DataTest, TextsThatCannotServeAreRefused) {
  const std::string start = scenario_.path + ": data.text: ";
  scenario_.data_text = "missing.txt";
  EXPECT_THAT(refusal(), HasSubstr("missing.txt cannot be opened: No such file"));
  EXPECT_THAT(refusal(), ::testing::StartsWith(start));
  scenario_.data_text = ".";
  EXPECT_THAT(refusal(), HasSubstr("is not a file"));
  write("short.txt", "12345678");
  scenario_.data_text = "short.txt";
  EXPECT_THAT(refusal(), HasSubstr("has 8 bytes; allowed: at least sequence + 1 = 9"));
}

struct BadIdx {
  const char* name;
  std::string images, labels, expected;
};

class IdxTest : public DataTest, public ::testing::WithParamInterface<BadIdx> {};

TEST_P(IdxTest, IsRefused) {
  scenario_.workload.family = "mlp";
  scenario_.workload.keys["inputs"] = 4;
  scenario_.data_images = ".";
  write("train-images-idx3-ubyte", GetParam().images);
  write("train-labels-idx1-ubyte", GetParam().labels);
  EXPECT_THAT(refusal(), HasSubstr(GetParam().expected));
}

const std::string kGoodImage = big_endian({0x803, 1, 2, 2}) + "abcd", kGoodLabel = big_endian({0x801, 1}) + "\x01";

INSTANTIATE_TEST_SUITE_P(
    Malformed, IdxTest,
    ::testing::Values(
        BadIdx{"empty", "", kGoodLabel, "ends inside its header"},
        BadIdx{"header", big_endian({0x803, 1}), kGoodLabel, "ends inside its header"},
        BadIdx{"magic", big_endian({0x1F8B0808}) + kGoodImage, kGoodLabel, "has magic number 529205256"},
        BadIdx{"truncated", kGoodImage.substr(0, 19), kGoodLabel, "holds 3 bytes of data; allowed: the 4"},
        BadIdx{"too_long", kGoodImage + "e", kGoodLabel, "holds 5 bytes"},
        BadIdx{"huge", big_endian({0x803, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}), kGoodLabel, "holds 0 bytes"},
        BadIdx{"no_image", big_endian({0x803, 0, 2, 2}), kGoodLabel, "has a dimension of 0"},
        BadIdx{"labels", kGoodImage, big_endian({0x801, 2}) + "\x01\x02", "holds 2 labels; allowed: 1"},
        BadIdx{"class", kGoodImage, big_endian({0x801, 1}) + "\x0a", "workload.classes: is 10; allowed: 11"},
        BadIdx{"pixels", big_endian({0x803, 1, 1, 1}) + "a", kGoodLabel, "workload.inputs: is 4; allowed: 1"}),
    [](const auto& bad) { return std::string(bad.param.name); });

}  // namespace
}  // namespace tandem
