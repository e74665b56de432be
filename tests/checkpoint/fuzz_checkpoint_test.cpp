// Checkpoints' files mutated as trees and as bytes, with checksums that are right again: each is read, or refused by
// name.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/stage_file.hpp"
#include "tests/common/fuzz.hpp"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kPercent = 10;  // of the manifest, and of stage files
constexpr const char* kOwnChecksum = "manifest_xxh3_128";

const std::vector<std::string>& words() {
  static const std::vector<std::string> kWords = {"{", "[", "\"", "1e999", "\xFF", ",", "-", std::string(8, '\0')};
  return kWords;
}

class FuzzCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/tandem-fuzz-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  std::string folder_;
};

TEST_F(FuzzCheckpoint, EveryManifestIsReadOrRefused) {
  Manifest whole{4,
                 {{"seed", "0"}, {"workload.family", "gpt"}},
                 {},
                 {{"scale", 4}, {"good_steps", 1}},
                 {false, "abc", std::string(32, 'a')}};
  whole.loss_scale.insert({{"beta1_power", 0.5}, {"beta2_power", 0.75}});
  for (const char* stage : {"embedding", "block0", "head"})
    whole.files.push_back({std::string(stage) + ".safetensors", 4096, std::string(32, 'a')});
  const Json seed = Json::parse(to_text(whole));
  Dice dice(fuzz_seed(200));
  FuzzAccount account("manifest");
  for (int i = 0; i < fuzz_inputs(kPercent); ++i) {
    Json json = seed;
    for (std::size_t n = dice.below(3); n > 0; --n) mutate_json(json, dice);
    if (json.is_object() && dice.below(8) != 0) {
      json.erase(kOwnChecksum);
      json[kOwnChecksum] = checksum_of(json.dump()).text();
    }
    std::string text = json.dump(2);
    if (dice.below(8) == 0) mutate_bytes(text, dice, words());
    write(kManifestName, text);
    account.count(Json::accept(text), [&] {
      try {
        const Manifest manifest = read_manifest(folder_);
        EXPECT_GT(manifest.step, 0);
        EXPECT_FALSE(manifest.files.empty());
        for (const Manifest::File& file : manifest.files) EXPECT_EQ(file.name.find('/'), std::string::npos);
        return true;
      } catch (const DamagedCheckpoint& damage) {
        EXPECT_NE(std::string(damage.what()).find(kManifestName), std::string::npos) << damage.what();
      } catch (const ConfigError&) {  // another format
      }
      return false;
    });
  }
  account.close();
}

TEST_F(FuzzCheckpoint, EveryStageFileIsReadOrRefused) {
  const auto layout = LayoutBuilder().add("norm", {3}).add("weight", {2, 5}).build();
  std::vector<float> values(static_cast<std::size_t>(layout->elements), 1.5F);
  const std::vector<StageBucket> buckets{{"", DType::F32, layout.get(), reinterpret_cast<std::byte*>(values.data())}};
  const std::string path = stage_file_path(folder_, "head");
  write_stage(path, "head", buckets);
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), sizeof length);
  const Json seed = Json::parse(whole.substr(8, length));
  Dice dice(fuzz_seed(201));
  FuzzAccount account("stage file");
  for (int i = 0; i < fuzz_inputs(kPercent); ++i) {
    Json json = seed;
    for (std::size_t n = dice.below(3); n > 0; --n) mutate_json(json, dice);
    std::string header = json.dump();
    if (dice.below(8) == 0) mutate_bytes(header, dice, words());
    std::string text(8, '\0');
    const std::uint64_t says = dice.below(16) == 0 ? dice.below(2) * UINT64_MAX / 2 + dice.below(999) : header.size();
    std::memcpy(text.data(), &says, sizeof says);
    text += header + whole.substr(8 + length);
    if (dice.below(16) == 0) mutate_bytes(text, dice, words());
    write("head.safetensors", text);
    account.count(says == header.size() && Json::accept(header), [&] {
      try {
        check_stage(path, "head", buckets);
        read_stage(path, "head", buckets);
        return true;
      } catch (const DamagedCheckpoint& damage) {
        EXPECT_TRUE(std::string(damage.what()).starts_with(path)) << damage.what();
      }
      return false;
    });
  }
  account.close();
}

}  // namespace
}  // namespace tandem::test
