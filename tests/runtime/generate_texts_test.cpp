// Texts that grow, and prompts that go together.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/base/ids.hpp"
#include "runtime/growing_texts.hpp"
#include "runtime/prompts.hpp"
#include "tests/common/generation.hpp"

namespace tandem {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(GeneratedTexts, AreShownInWholeCharacters) {
  EXPECT_EQ(whole_characters("abc"), 3U);
  EXPECT_EQ(whole_characters("ab\xC3"), 2U);
  EXPECT_EQ(whole_characters("ab\xC3\xBC"), 4U);
  EXPECT_EQ(whole_characters("\xE2\x82"), 0U);
  EXPECT_EQ(whole_characters("\xF0\x9F\x98"), 0U);
  EXPECT_EQ(whole_characters("\xF0\x9F\x98\x80"), 4U);
  EXPECT_EQ(whole_characters("\x80\x80\x80\x80\x80"), 5U);  // no character at all
  EXPECT_EQ(whole_characters(""), 0U);
  const TokenText bytes(testing::generating_scenario("resident", 1 << 20), /*as_numbers=*/false);
  std::vector<std::string> shown;
  GrowingTexts texts(bytes, 1, 1, {}, kNone, [&](std::string_view piece) { shown.emplace_back(piece); });
  for (const std::int64_t byte : {0x61, 0xC3, 0xBC, 0xE2}) texts.add(0, Numbers{byte});
  texts.end();
  EXPECT_EQ(shown, (std::vector<std::string>{"a", "\xC3\xBC", "\xE2"}));
}

TEST(GeneratedTexts, EndAtTheirStop) {
  const TokenText numbers(testing::generating_scenario("resident", 1 << 20), /*as_numbers=*/true);
  GrowingTexts texts(numbers, 2, 4, {}, 9, [](std::string_view) { FAIL() << "of several nobody is shown"; });
  texts.add(1, Numbers{1, 2});
  texts.add(0, Numbers{3, 9});
  texts.add(1, Numbers{9, 5});
  texts.add(0, Numbers{9, 9});
  EXPECT_EQ(texts.tokens(0), (Numbers{3}));
  EXPECT_EQ(texts.tokens(1), (Numbers{}));
  EXPECT_EQ(texts.tokens(2), (Numbers{1}));
  EXPECT_EQ(texts.tokens(3), (Numbers{2, 5}));
  EXPECT_TRUE(texts.has_stopped(0) && texts.has_stopped(2));
  EXPECT_FALSE(texts.has_stopped(3));
  EXPECT_EQ(texts.count(), 8);
  EXPECT_EQ(numbers.bytes_of(Numbers{3, 250}), "3 250 ");
}

TEST(GeneratedTexts, AreOfTokensThatTheNetworkKnows) {
  TokenText numbers(testing::generating_scenario("resident", 1 << 20), /*as_numbers=*/true);
  EXPECT_EQ(numbers.tokens_of(" 1  255 0", "f:1: "), (Numbers{1, 255, 0}));
  for (const char* wrong : {"", " ", "256", "-1", "1,2", "1 x", "99999999999999999999"})
    EXPECT_THROW(numbers.tokens_of(wrong, "f:1: "), ConfigError) << wrong;
}

// As editors of other systems write files: a byte order mark before the first line, CRLF, lines that are empty.
TEST(GeneratedTexts, HavePromptsOfAnyEditor) {
  const Scenario scenario = testing::generating_scenario("resident", 1 << 20);
  TokenText bytes(scenario, /*as_numbers=*/false);
  const std::string path = ::testing::TempDir() + "tandem_prompts_" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << "\xEF\xBB\xBF"
                                           "a\r\n\r\n\n\xEF\xBB\xBF"
                                           "b\r\nc";
  const std::vector<Prompt> prompts = read_prompts(path, bytes, scenario);
  std::filesystem::remove(path);
  ASSERT_EQ(prompts.size(), 3U);
  EXPECT_EQ(prompts[0].text, "a");
  EXPECT_EQ(prompts[0].tokens, (Numbers{'a'}));
  EXPECT_EQ(prompts[1].tokens, (Numbers{0xEF, 0xBB, 0xBF, 'b'}));  // within a file it is text
  EXPECT_EQ(prompts[2].tokens, (Numbers{'c'}));
  EXPECT_EQ(prompts[2].number, 2U);
}

TEST(GeneratedTexts, NeedAPrompt) {
  const Scenario scenario = testing::generating_scenario("resident", 1 << 20);
  TokenText bytes(scenario, /*as_numbers=*/false);
  const std::string path = ::testing::TempDir() + "tandem_no_prompts_" + std::to_string(getpid());
  for (const char* nothing : {"", "\r\n", "\n\n", "\xEF\xBB\xBF", "\xEF\xBB\xBF\r\n", "\xFF\xFEh\n", "\xFE\xFF\nh"}) {
    std::ofstream(path, std::ios::binary) << nothing;
    EXPECT_THROW(read_prompts(path, bytes, scenario), ConfigError) << nothing;
  }
  std::filesystem::remove(path);
}

// Batches times their sizes, and the numbers of their prompts, of blocks of at most 2 x 2.
using Blocks = std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>>>;
Blocks blocks_of_nine(bool one_length) {
  std::vector<Prompt> prompts;
  for (const std::int64_t length : {3, 2, 3, 3, 3, 3, 2, 3, 3})
    prompts.push_back({prompts.size(), "", Numbers(static_cast<std::size_t>(length)), {}, length});
  Blocks blocks;
  for (const PromptBlock& block : blocks_of(prompts, 2, 2, one_length)) {
    blocks.push_back({{block.micro_batches, block.batch}, {}});
    for (const Prompt& prompt : block.prompts) blocks.back().second.push_back(prompt.number);
  }
  return blocks;
}

TEST(GeneratedTexts, GoTogetherTheShortestPromptsFirst) {
  EXPECT_EQ(blocks_of_nine(/*one_length=*/false),
            (Blocks{{{2, 2}, {1, 6, 0, 2}}, {{2, 2}, {3, 4, 5, 7}}, {{1, 1}, {8}}}));
}

TEST(GeneratedTexts, GoTogetherWherePromptsAreOfOneLength) {
  EXPECT_EQ(blocks_of_nine(/*one_length=*/true),
            (Blocks{{{1, 2}, {1, 6}}, {{2, 2}, {0, 2, 3, 4}}, {{1, 2}, {5, 7}}, {{1, 1}, {8}}}));
}

TEST(GeneratedTexts, HaveAsManyTokensAsTheyAskFor) {
  const TokenText numbers(testing::generating_scenario("resident", 1 << 20), /*as_numbers=*/true);
  GrowingTexts texts(numbers, 2, 2, {1, 3}, kNone, nullptr);
  for (const std::int64_t token : {5, 6, 7, 8}) texts.add(0, Numbers{token, token});
  EXPECT_EQ(texts.tokens(0), (Numbers{5}));
  EXPECT_EQ(texts.tokens(1), (Numbers{5, 6, 7}));
  EXPECT_EQ(texts.count(), 4);
}

}  // namespace
}  // namespace tandem
