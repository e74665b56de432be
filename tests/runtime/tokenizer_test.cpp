// BPE of bytes and of characters: what a small tokenizer makes of texts, whatever file a stranger gives, and, where
// Python has written cases with the tokenizers library (tests/scripts/tokenizers_library.py), the same tokens as there.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "runtime/tokenizer/tokenizer_file.hpp"
#include "runtime/tokenizer/utf8_text.hpp"
#include "tests/common/fuzz.hpp"
#include "tests/runtime/data_fixture.hpp"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Ids = std::vector<std::uint32_t>;

// All bytes a to z and a space, "ab", "abc" and "bc", of which "bc" is learnt first.
Json small() {
  Json vocab = Json::object();
  for (char c = 'a'; c <= 'z'; ++c) vocab[std::string(1, c)] = c - 'a';
  vocab["\u0120"] = 26, vocab["bc"] = 27, vocab["ab"] = 28, vocab["abc"] = 29, vocab["\u0120ab"] = 30;
  return {{"added_tokens", {{{"id", 31}, {"content", "<end>"}, {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"model",
           {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"b c", "a b", Json::array({"a", "bc"}), "\u0120 ab"}}}}};
}

Ids encoded(const Json& tokenizer, const std::string& text) {
  Ids out;
  read_tokenizer(tokenizer.dump()).encode(text, out);
  return out;
}

std::string refusal_of(const Json& tokenizer) {
  try {
    read_tokenizer(tokenizer.dump());
  } catch (const BadJson& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Tokenizer, MergesWhatWasLearntFirst) {
  EXPECT_THAT(encoded(small(), "abc"), ElementsAre(29U));  // a bc, then abc
  EXPECT_THAT(encoded(small(), "ab"), ElementsAre(28U));
  EXPECT_THAT(encoded(small(), "abb"), ElementsAre(28U, 1U));
  EXPECT_THAT(encoded(small(), "bcbcab"), ElementsAre(27U, 27U, 28U));
  EXPECT_THAT(encoded(small(), "ab ab"), ElementsAre(28U, 30U));
  EXPECT_TRUE(encoded(small(), "").empty());
}

TEST(Tokenizer, TokensThatWereAddedAreFoundAsTheyAreWritten) {
  EXPECT_THAT(encoded(small(), "ab<end>ab"), ElementsAre(28U, 31U, 28U));
  EXPECT_THAT(encoded(small(), "<end><end>"), ElementsAre(31U, 31U));
  Json greedy = small();
  greedy["added_tokens"][0]["lstrip"] = greedy["added_tokens"][0]["rstrip"] = true;
  EXPECT_THAT(encoded(greedy, "ab  <end> ab"), ElementsAre(28U, 31U, 28U));
}

TEST(Tokenizer, ASpaceIsAddedWhereTheFileSaysSo) {
  Json spaced = small();
  spaced["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_THAT(encoded(spaced, "ab"), ElementsAre(30U));
  EXPECT_THAT(encoded(spaced, " ab"), ElementsAre(30U));
  EXPECT_THAT(encoded(spaced, "ab<end>ab"), ElementsAre(30U, 31U, 30U));
}

// As SentencePiece has it: "_" for a space and before the text, and bytes of what is no character of its.
Json of_characters() {
  Json json = small();
  Json& vocab = json["model"]["vocab"];
  vocab.erase("\u0120"), vocab.erase("\u0120ab");
  vocab["_"] = 26, vocab["_ab"] = 30, vocab["<unk>"] = 32, vocab["<0xC3>"] = 33, vocab["<0xA9>"] = 34;
  json["model"]["merges"] = {"b c", "a b", Json::array({"a", "bc"}), "_ ab"};
  json["model"].update({{"unk_token", "<unk>"}, {"fuse_unk", true}, {"byte_fallback", true}});
  json["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}, {"split", false}};
  json["decoder"] = {
      {"type", "Sequence"},
      {"decoders",
       {{{"type", "Replace"}, {"pattern", {{"String", "_"}}}, {"content", " "}}, {{"type", "ByteFallback"}}}}};
  return json;
}

TEST(Tokenizer, MergesCharactersWithBytesOfOthers) {
  EXPECT_THAT(encoded(of_characters(), "ab ab"), ElementsAre(30U, 30U));
  EXPECT_THAT(encoded(of_characters(), "ab<end>ab"), ElementsAre(30U, 31U, 28U));  // the first alone
  EXPECT_THAT(encoded(of_characters(), "\u00E9a"), ElementsAre(26U, 33U, 34U, 0U));
  EXPECT_THAT(encoded(of_characters(), "\u4F60\u597Da"), ElementsAre(26U, 32U, 0U));  // of which there are no bytes
  Json apart = of_characters();
  apart["model"]["fuse_unk"] = false;
  EXPECT_THAT(encoded(apart, "\u4F60\u597Da"), ElementsAre(26U, 32U, 32U, 0U));
  apart["model"].erase("unk_token");
  EXPECT_THROW(encoded(apart, "\u4F60"), std::out_of_range);
  const std::vector<std::string> shown = read_tokenizer(of_characters().dump()).bytes_of_tokens();
  EXPECT_EQ(shown[30], " ab");
  EXPECT_EQ(shown[33] + shown[34], "\u00E9");
}

TEST(Tokenizer, ANormalFormIsWhatStandsBetweenAddedTokens) {
  Json json = of_characters();
  json["normalizer"] = {{"type", "Sequence"},
                        {"normalizers",
                         {{{"type", "Prepend"}, {"prepend", "_"}},
                          {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "_"}}}}};
  json["pre_tokenizer"] = nullptr;
  EXPECT_THAT(encoded(json, "ab ab<end>ab"), ElementsAre(30U, 30U, 31U, 30U));
  json["added_tokens"].push_back({{"id", 35}, {"content", "z z"}, {"normalized", true}});
  EXPECT_THAT(encoded(json, "a z za"), ElementsAre(26U, 0U, 35U, 0U));
}

TEST(Tokenizer, AWholePieceIsOneTokenIfMergesAreIgnored) {
  Json whole = small();
  whole["model"]["vocab"]["zab"] = 40;
  EXPECT_THAT(encoded(whole, "zab"), ElementsAre(25U, 28U));
  whole["model"]["ignore_merges"] = true;
  EXPECT_THAT(encoded(whole, "zab"), ElementsAre(40U));
}

TEST(Tokenizer, AByteWithoutATokenIsNamed) {
  EXPECT_THROW(
      {
        try {
          encoded(small(), "abA");
        } catch (const std::out_of_range& error) {
          EXPECT_STREQ(error.what(), "no token for the byte 0x41");
          throw;
        }
      },
      std::out_of_range);
}

TEST(Tokenizer, OtherKindsAreRefusedByName) {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = small();
    json[Json::json_pointer(pointer)] = value;
    return refusal_of(json);
  };
  EXPECT_EQ(refusal_of(small()), "accepted");
  EXPECT_THAT(with("/model/type", "Unigram"), HasSubstr("model.type: is 'Unigram'; allowed: BPE"));
  EXPECT_THAT(with("/model/type", "WordPiece"), HasSubstr("'WordPiece'"));
  EXPECT_THAT(with("/model/end_of_word_suffix", "</w>"), HasSubstr("model.end_of_word_suffix"));
  EXPECT_THAT(with("/model/dropout", 0.1), HasSubstr("model.dropout"));
  EXPECT_THAT(with("/normalizer", {{"type", "Lowercase"}}),
              HasSubstr("normalizer.type: is 'Lowercase'; allowed: none, or a Sequence of NFC"));
  EXPECT_THAT(with("/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", " +"}}}, {"content", " "}}),
              HasSubstr("normalizer.pattern: is no String"));
  EXPECT_THAT(with("/pre_tokenizer", {{"type", "Whitespace"}}),
              HasSubstr("pre_tokenizer.type: is 'Whitespace'; allowed: none, Metaspace, ByteLevel"));
  EXPECT_THAT(with("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}}),
              HasSubstr("pre_tokenizer.prepend_scheme: is 'last'; allowed: always, first, never"));
  EXPECT_THAT(with("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "Contiguous"}}),
              HasSubstr("pre_tokenizer.behavior: is 'Contiguous'; allowed: Isolated, "));
  Json unknown = of_characters();
  unknown["model"]["unk_token"] = "?";
  EXPECT_THAT(refusal_of(unknown), HasSubstr("model.unk_token: is '\"?\"'; allowed: a token of model.vocab"));
  EXPECT_THAT(with("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}}),
              HasSubstr("pre_tokenizer.pattern: cannot be read"));
  EXPECT_THAT(with("/model/merges/0", "q z"), HasSubstr("model.merges.0: is 'q z'"));
  EXPECT_THAT(with("/model/merges/0", "bc"), HasSubstr("model.merges.0"));
  EXPECT_THAT(with("/model/vocab/a", -1), HasSubstr("model.vocab"));
  EXPECT_THAT(with("/added_tokens/0/single_word", true), HasSubstr("single_word: is true; allowed: false"));
}

TEST(Tokenizer, WhatIsNoUtf8IsReplacedAsPythonDoes) {
  std::int64_t replaced = 0;
  EXPECT_EQ(valid_utf8("a\xE2\x82\xAC", replaced), "a\xE2\x82\xAC");
  EXPECT_EQ(replaced, 0);
  // The longest beginnings of characters: E2 82 | 41 | F0 9F | C0 | 80 | ED | A0 | 80.
  EXPECT_EQ(valid_utf8("\xE2\x82"
                       "A\xF0\x9F\xC0\x80\xED\xA0\x80",
                       replaced),
            "\uFFFDA\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(replaced, 7);
  EXPECT_EQ(composed("e\u0301 \n e\u0301"), "\u00E9 \n \u00E9");
}

TEST(Tokenizer, LongPiecesAndSlowPatternsEnd) {
  Json json = small();
  EXPECT_EQ(encoded(json, std::string(300'000, 'a')).size(), 300'000U);
  json["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers",
                            {{{"type", "Split"}, {"pattern", {{"Regex", "(a+a+)+[bc]"}}}, {"behavior", "Isolated"}},
                             {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  EXPECT_THROW(encoded(json, std::string(5'000, 'a')), BadPattern);
}

TEST(Tokenizer, EveryFileIsReadOrRefused) {
  test::Dice dice(test::fuzz_seed(310));
  test::FuzzAccount account("tokenizer");
  for (int i = 0; i < test::fuzz_inputs(5); ++i) {
    Json json = dice.below(2) == 0 ? small() : of_characters();
    for (std::size_t n = dice.below(3); n > 0; --n) test::mutate_json(json, dice);
    std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (dice.below(8) == 0) test::mutate_bytes(text, dice, {"{", "[", "\"", "1e999", "\xFF"});
    account.count(Json::accept(text), [&] {
      try {
        Ids out;
        read_tokenizer(text).encode("abc ab<end> zz", out);
        return true;
      } catch (const BadJson&) {
      } catch (const BadPattern&) {
      } catch (const std::out_of_range&) {
      }
      return false;
    });
  }
  account.close(0.9);
}

// [{"tokenizer": path, "cases": [{"text": hexadecimal bytes, "ids": [..]}]}]
std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

TEST(Tokenizer, MakesTheTokensThatTheLibraryMakes) {
  const char* path = std::getenv("TANDEM_TOKENIZER_CASES");
  if (path == nullptr) GTEST_SKIP() << "no cases: tests/scripts/tokenizers_library.py writes them";
  std::ifstream file(path);
  std::size_t cases = 0;
  for (const Json& group : Json::parse(file)) {
    std::ifstream text(group["tokenizer"].get<std::string>());
    Tokenizer tokenizer =
        read_tokenizer(std::string(std::istreambuf_iterator<char>(text), std::istreambuf_iterator<char>()));
    for (const Json& item : group["cases"]) {
      std::int64_t replaced = 0;
      Ids out;
      tokenizer.encode(valid_utf8(from_hex(item["text"]), replaced), out);
      EXPECT_EQ(out, item["ids"].get<Ids>()) << group["tokenizer"] << ", text " << item["text"];
      ++cases;
    }
  }
  EXPECT_GT(cases, 100U);
}

class TokenizedTextTest : public DataTest {
 protected:
  TokenizedTextTest() {
    write("tokenizer.json", small().dump());
    write("text.txt", "abc ab<end>abc ab zz bcbc<end>ab ab ab ab");
    scenario_.data_text = "text.txt", scenario_.data_tokenizer = "tokenizer.json";
    scenario_.workload.keys["vocabulary"] = 32;
  }
};

TEST_F(TokenizedTextTest, RowsAreStretchesOfTheTokens) {
  const Ids all = encoded(small(), "abc ab<end>abc ab zz bcbc<end>ab ab ab ab");
  const Tokens expected(all.begin(), all.end());
  const auto data = open_data(scenario_);
  for (std::int32_t step = 0; step < 20; ++step) {
    const Tokens row = next_tokens(*data, {step, 0, 0}, 1, 8).inputs;
    EXPECT_NE(std::search(expected.begin(), expected.end(), row.begin(), row.end()), expected.end());
  }
}

TEST_F(TokenizedTextTest, ATokenBeyondTheVocabularyIsRefusedWithTheTokenizersSize) {
  scenario_.workload.keys["vocabulary"] = 31;
  EXPECT_THAT(refusal(), HasSubstr("workload.vocabulary: is 31, and the text has token 31 of "));
  EXPECT_THAT(refusal(), HasSubstr("tokenizer.json, which has 32; allowed: 32 or more"));
}

TEST_F(TokenizedTextTest, WhatCannotBeReadIsRefused) {
  write("text.txt", "abc");
  EXPECT_THAT(refusal(), HasSubstr("data.text: "));
  EXPECT_THAT(refusal(), HasSubstr("has 1 tokens; allowed: at least sequence + 1 = 9"));
  write("text.txt", "A long text with letters that have no token");
  EXPECT_THAT(refusal(), HasSubstr("has no token for the byte 0x41"));
  write("tokenizer.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("tokenizer.json: model: is missing"));
  scenario_.data_tokenizer = "missing.json";
  EXPECT_THAT(refusal(), HasSubstr("data.tokenizer: "));
}

TEST_F(TokenizedTextTest, WhatIsNoUtf8IsRemarkedOn) {
  Json json = small();
  for (const char* c : {"\u00EF", "\u00BF", "\u00BD"}) json["model"]["vocab"][c] = 5;
  write("tokenizer.json", json.dump());
  write("text.txt", "abc ab\xFF ab ab ab ab ab ab ab");
  EXPECT_THAT(open_data(scenario_)->remark(), HasSubstr("is no UTF-8 in 1 places"));
}

}  // namespace
}  // namespace tandem
