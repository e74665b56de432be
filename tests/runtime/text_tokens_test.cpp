// Texts with fewer characters than bytes there are, texts that are none, and paths that are no files.
#include "runtime/text_tokens.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/base/errors.hpp"
#include "runtime/text_kind.hpp"
#include "tests/runtime/data_fixture.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::string_literals;

class TextTokensTest : public DataTest {
 protected:
  TextTokensTest() { scenario_.data_text = "text.txt"; }
  // Every token that batches of this text have, with the byte that it stands for.
  std::set<std::int64_t> tokens_of(const std::string& text) {
    write("text.txt", text);
    const Batch batch = next_tokens(*open_data(scenario_), {0, 0, 0}, 200, 8);
    std::set<std::int64_t> all(batch.inputs.begin(), batch.inputs.end());
    all.insert(batch.targets.begin(), batch.targets.end());
    return all;
  }
  // A checkpoint that the scenario goes on from.
  void resume(const SavedData& saved) {
    Manifest manifest;
    manifest.step = 1;
    manifest.files = {{"head.safetensors", 0, std::string(32, '0')}};
    manifest.data = saved;
    write("manifest.json", to_text(manifest));
    scenario_.resume_folder = folder_.string();
    scenario_.first_step = 1;
  }
};

const std::string kHello = "hello, world! the five boxing wizards jump quickly\n";  // 31 characters

std::int64_t characters_of(const std::string& text) {
  return static_cast<std::int64_t>(std::set<char>(text.begin(), text.end()).size());
}

TEST_F(TextTokensTest, AreTheBytesWhereAllHaveRoom) {
  for (const std::int64_t vocabulary : {256, 257, 50257}) {
    scenario_.workload.keys["vocabulary"] = vocabulary;
    EXPECT_EQ(tokens_of("abababababababab"), (std::set<std::int64_t>{'a', 'b'}));
    EXPECT_THAT(open_data(scenario_)->saved().characters, IsEmpty());
  }
}

TEST_F(TextTokensTest, AreTheCharactersInOrderWhereTheyHaveNot) {
  const std::int64_t count = characters_of(kHello);
  for (const std::int64_t vocabulary : {count, count + 1, std::int64_t{255}}) {
    scenario_.workload.keys["vocabulary"] = vocabulary;
    const std::set<std::int64_t> tokens = tokens_of(kHello);
    EXPECT_EQ(static_cast<std::int64_t>(tokens.size()), count) << "each has its own";
    EXPECT_EQ(*tokens.begin(), 0);
    EXPECT_EQ(*tokens.rbegin(), count - 1);
    std::string sorted = open_data(scenario_)->saved().characters;
    EXPECT_EQ(static_cast<std::int64_t>(sorted.size()), count);
    EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
  }
}

TEST_F(TextTokensTest, HighBytesAreCharactersToo) {
  scenario_.workload.keys["vocabulary"] = 4;
  EXPECT_EQ(tokens_of("a\xff\x80zza\xff\x80z").size(), 4U);
}

TEST_F(TextTokensTest, MoreCharactersThanTheVocabularyAreRefused) {
  const std::int64_t count = characters_of(kHello);
  write("text.txt", kHello);
  for (const std::int64_t vocabulary : {std::int64_t{2}, count - 1}) {
    scenario_.workload.keys["vocabulary"] = vocabulary;
    EXPECT_THAT(refusal(), HasSubstr("workload.vocabulary: is " + std::to_string(vocabulary)));
    EXPECT_THAT(refusal(), HasSubstr("has " + std::to_string(count) + " characters"));
    EXPECT_THAT(refusal(), HasSubstr("allowed: " + std::to_string(count) + " or more"));
  }
}

// 'a' (97) and ' ' (32) are 65 apart.
TEST_F(TextTokensTest, NoTwoCharactersShareAToken) {
  scenario_.workload.keys["vocabulary"] = 65;
  EXPECT_EQ(tokens_of("a a  aa a a a  aa a a").size(), 2U);
}

TEST_F(TextTokensTest, TheMaskHasATokenOfItsOwn) {
  scenario_.workload.family = "bert";
  const std::int64_t count = characters_of(kHello);
  write("text.txt", kHello);
  scenario_.workload.keys["vocabulary"] = count;
  EXPECT_THAT(refusal(), HasSubstr("allowed: " + std::to_string(count + 1) + " or more"));
  scenario_.workload.keys["vocabulary"] = count + 1;
  constexpr std::int64_t kRows = 100, kSequence = 8;
  Tokens inputs(kRows * kSequence), targets(inputs.size());
  open_data(scenario_)->masked_token_batch({0, 0, 0}, kRows, kSequence, count + 1, inputs.data(), targets.data());
  for (std::size_t i = 0; i < inputs.size(); ++i) EXPECT_EQ(inputs[i] == count, targets[i] != -100);
  EXPECT_EQ(std::set<std::int64_t>(inputs.begin(), inputs.end()).size(), static_cast<std::size_t>(count + 1));
  EXPECT_LT(*std::max_element(targets.begin(), targets.end()), count);
}

TEST_F(TextTokensTest, OfTheHeldOutPartAreThoseOfTheWhole) {
  scenario_.workload.keys["vocabulary"] = 8;
  scenario_.validation = {.every = 1, .batches = 1, .fraction = 0.5};
  write("text.txt", std::string(50, 'a') + std::string(50, 'z'));
  const auto data = open_data(scenario_);
  EXPECT_EQ(next_tokens(*data, {0, 0, 0}, 1, 8).inputs[0], 0);
  EXPECT_EQ(next_tokens(*data, {0, 0, 0, true}, 1, 8).inputs[0], 1);
}

TEST_F(TextTokensTest, AResumedRunHasThoseOfItsCheckpoint) {
  scenario_.workload.keys["vocabulary"] = 40;
  write("text.txt", kHello);
  const auto begun = open_data(scenario_);
  resume(begun->saved());
  EXPECT_EQ(next_tokens(*open_data(scenario_), {3, 0, 0}, 9, 8), next_tokens(*begun, {3, 0, 0}, 9, 8));
  // Fewer characters than before: each keeps its token.
  const std::int64_t h = begun->saved().characters.find('h');
  EXPECT_EQ(tokens_of(std::string(20, 'h')), std::set<std::int64_t>{h});
  EXPECT_EQ(open_data(scenario_)->saved().characters, begun->saved().characters);
  write("text.txt", kHello + "Q");
  EXPECT_THAT(refusal(), HasSubstr("data.text: "));
  EXPECT_THAT(refusal(), HasSubstr("has the character 'Q', and the text of the checkpoint had not"));
}

// What builds before drew and folded: a run that they began goes on with the same batches.
TEST_F(TextTokensTest, AnOldCheckpointGoesOnAsItBegan) {
  scenario_.workload.keys["vocabulary"] = 65;
  scenario_.workload.devices = 2;
  write("text.txt", kHello);
  resume({.by_micro_batch = true, .characters = "", .checksum = ""});
  const auto data = open_data(scenario_);
  EXPECT_THAT(data->remark(), HasSubstr("bytes modulo 65"));
  EXPECT_TRUE(data->saved().by_micro_batch);
  const Batch first = next_tokens(*data, {1, 0, 1}, 2, 8), second = next_tokens(*data, {1, 1, 1}, 2, 8);
  EXPECT_NE(first, second);
  // Of micro-batch 0, whatever the number of micro-batches and ranks: rows of a rank follow those before it.
  Batch both = next_tokens(*data, {1, 0, 0}, 2, 8);
  both.inputs.insert(both.inputs.end(), first.inputs.begin(), first.inputs.end());
  EXPECT_EQ(next_tokens(*data, {1, 0, 0}, 4, 8).inputs, both.inputs);
  // Step 1, micro-batch 1, rank 1, as the build before drew them.
  Tokens expected;
  for (std::int64_t row = 2; row < 4; ++row) {
    std::uint64_t x = scenario_.seed;
    for (const std::int64_t part : {std::int64_t{1}, std::int64_t{1}, row, std::int64_t{0}}) {
      x = (x ^ static_cast<std::uint64_t>(part)) + 0x9E3779B97F4A7C15;
      x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
      x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
      x ^= x >> 31;
    }
    const std::size_t start = x % (kHello.size() - 9 + 1);
    for (std::size_t i = 0; i < 8; ++i) expected.push_back(static_cast<unsigned char>(kHello[start + i]) % 65);
  }
  EXPECT_EQ(second.inputs, expected);
}

std::string random_bytes(std::size_t count) {
  std::mt19937 generator(5);
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(generator() & 0xFF);
  return bytes;
}

TEST_F(TextTokensTest, FilesThatAreNoTextAreRemarkedOn) {
  const std::string filler(1000, 'x');
  const std::pair<std::string, const char*> cases[] = {
      {"\x1f\x8b\x08\0"s + filler, "gzip"},
      {"\x28\xb5\x2f\xfd"s + filler, "zstd"},
      {"PK\x03\x04"s + filler, "zip"},
      {"\xfd"s + "7zXZ\0"s + filler, "xz"},
      {"BZh9"s + filler, "bzip2"},
      {std::string(257, 'n') + "ustar" + filler, "tar"},
      {"\xff\xfe"s + "a\0b\0"s + filler, "UTF-16"},
      {"a\0b\0c\0d\0e\0f\0g\0h\0i\0"s, "NUL"},
      {filler + std::string(10, '\0') + filler, "NUL"},
      {random_bytes(4096), "binary data"},
      {std::string(200'000, 'x') + random_bytes(200'000), "binary data"},
  };
  for (const auto& [content, kind] : cases) {
    write("text.txt", content);
    EXPECT_THAT(open_data(scenario_)->remark(), HasSubstr(kind));
    EXPECT_THAT(open_data(scenario_)->remark(), HasSubstr("data.text: "));
  }
}

TEST_F(TextTokensTest, ATextWithTooManyCharactersMayBeNone) {
  scenario_.workload.keys["vocabulary"] = 65;
  write("text.txt", "\x1f\x8b\x08"s + random_bytes(4000));
  EXPECT_THAT(refusal(), HasSubstr("which looks like gzip (compressed), has 256 characters"));
}

TEST_F(TextTokensTest, TextsAreNotRemarkedOn) {
  std::string latin1;
  for (int i = 0; i < 1000; ++i) latin1 += static_cast<char>(0xA0 + i % 96);
  for (const std::string& text :
       {kHello, "\xc3\xa9t\xc3\xa9 na\xc3\xafve \xe4\xb8\xad\xe6\x96\x87"s + kHello, latin1,
        "tab\tfeed\fescape\x1b[0m\r\n"s + kHello, "a stray NUL" + std::string(1, '\0') + std::string(5000, 'x')}) {
    write("text.txt", text);
    EXPECT_EQ(open_data(scenario_)->remark(), "") << text.substr(0, 20);
  }
}

TEST_F(TextTokensTest, WhatIsNoFileIsRefusedAtOnce) {
  ::alarm(60);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const auto& [path, what] :
       {std::pair{"pipe", "a named pipe"}, std::pair{".", "a folder"}, std::pair{"/dev/zero", "a device"}}) {
    scenario_.data_text = path;  // an absolute one stays so
    EXPECT_THAT(refusal(), HasSubstr(std::string("is not a file but ") + what + "; allowed: a text file"));
  }
  scenario_.workload.family = "mlp";
  scenario_.data_images = ".";
  ASSERT_EQ(::mkfifo((folder_ / "train-images-idx3-ubyte").c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("data.images: "));
  EXPECT_THAT(refusal(), HasSubstr("a named pipe"));
  ASSERT_EQ(::mkfifo((folder_ / "manifest.json").c_str(), 0600), 0);
  EXPECT_THROW(read_manifest(folder_.string()), DamagedCheckpoint);
  ::alarm(0);
}

}  // namespace
}  // namespace tandem
