// A file of token numbers: its rows, what is held out, and refusals with a token's place.
#include <set>

#include "tests/runtime/data_fixture.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string packed(const Tokens& tokens, int width) {
  std::string out;
  for (const std::int64_t token : tokens)
    for (int byte = 0; byte < width; ++byte) out.push_back(static_cast<char>(token >> (8 * byte) & 0xFF));
  return out;
}

class TokenFileTest : public DataTest {
 protected:
  TokenFileTest() {
    scenario_.data_tokens = "tokens.bin";
    scenario_.workload.keys["vocabulary"] = 1000;
  }
  static Tokens counting(std::int64_t count) {
    Tokens tokens(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int64_t>(i);
    return tokens;
  }
};

TEST_F(TokenFileTest, RowsAreStretchesOfTheTokensInBothWidths) {
  write("tokens.bin", packed(counting(1000), 2));
  const Batch narrow = next_tokens(*open_data(scenario_), {1, 0, 0}, 16, 8);
  write("tokens.bin", packed(counting(1000), 4));
  scenario_.data_token_bytes = 4;
  EXPECT_EQ(next_tokens(*open_data(scenario_), {1, 0, 0}, 16, 8), narrow);
  std::set<std::int64_t> starts;
  for (std::size_t row = 0; row < 16; ++row) {
    starts.insert(narrow.inputs[row * 8]);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(narrow.inputs[row * 8 + i], narrow.inputs[row * 8] + static_cast<std::int64_t>(i));
      EXPECT_EQ(narrow.targets[row * 8 + i], narrow.inputs[row * 8 + i] + 1);
    }
  }
  EXPECT_GT(starts.size(), 12U);
}

TEST_F(TokenFileTest, ALargeVocabularyHasFourBytesAToken) {
  scenario_.workload.keys["vocabulary"] = 70000;
  write("tokens.bin", packed({69999, 1, 2, 3, 4, 5, 6, 7, 8}, 4));
  EXPECT_EQ(next_tokens(*open_data(scenario_), {}, 1, 8).inputs, Tokens({69999, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(TokenFileTest, TrainingSeesNoTokenThatIsHeldOut) {
  write("tokens.bin", packed(counting(1000), 2));
  scenario_.validation = {1, 1, 0.1};
  const auto data = open_data(scenario_);
  for (std::int32_t step = 0; step < 50; ++step) {
    for (const std::int64_t token : next_tokens(*data, {step, 0, 0}, 8, 8).targets) EXPECT_LT(token, 900);
    for (const std::int64_t token : next_tokens(*data, {step, 0, 0, true}, 8, 8).inputs) EXPECT_GE(token, 900);
  }
}

TEST_F(TokenFileTest, WhatIsNoSuchFileIsRefused) {
  EXPECT_THAT(refusal(), StartsWith(scenario_.path + ": data.tokens: "));
  Tokens tokens = counting(100);
  tokens[70] = 1000;
  write("tokens.bin", packed(tokens, 2));
  EXPECT_THAT(refusal(), HasSubstr("token 70 of " + (folder_ / "tokens.bin").string() +
                                   " (byte 141, read as uint16) is 1000; allowed: below 1000"));
  write("tokens.bin", packed(counting(100), 2) + "x");
  EXPECT_THAT(refusal(),
              HasSubstr("has 201 bytes, which is no whole number of uint16 tokens; allowed: a multiple of 2"));
  write("tokens.bin", packed(counting(8), 2));
  EXPECT_THAT(refusal(), HasSubstr("has 8 tokens; allowed: at least sequence + 1 = 9"));
  write("tokens.bin", "");
  EXPECT_THAT(refusal(), HasSubstr("has 0 tokens"));
  scenario_.data_tokens = ".";
  EXPECT_THAT(refusal(), HasSubstr("is not a file but a folder"));
}

TEST_F(TokenFileTest, TheMaskIsNoTokenOfTheData) {
  scenario_.workload.family = "bert";
  write("tokens.bin", packed(counting(1000), 2));
  EXPECT_THAT(refusal(), HasSubstr("token 999 of "));
  EXPECT_THAT(refusal(), HasSubstr("allowed: below 999, as the last token of workload.vocabulary is the mask"));
  write("tokens.bin", packed(counting(999), 2));
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(TokenFileTest, AFamilyWithoutTokensIsToldSo) {
  write("tokens.bin", packed(counting(1000), 2));
  scenario_.workload.family = "mlp";
  EXPECT_THAT(refusal(), HasSubstr("data.tokens: mlp does not train on tokens; allowed: gpt, llama, moe or bert"));
}

}  // namespace
}  // namespace tandem
