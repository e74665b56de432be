// Weights that others saved: rows, columns and groups come to their places whatever part is asked for, and files of
// strangers are read or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/errors.hpp"
#include "runtime/weights/file_sums.hpp"
#include "runtime/weights/place_weights.hpp"
#include "runtime/weights/weight_files.hpp"
#include "tests/common/fuzz.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

class WeightsTest : public ::testing::Test {
 protected:
  WeightsTest() : folder_(fs::path(::testing::TempDir()) / ("tandem_weights_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~WeightsTest() override { fs::remove_all(folder_); }

  struct Stored {
    std::string name, type;
    std::vector<std::int64_t> shape;
    std::string bytes;
  };
  // 0, 1, 2, ... in fp32.
  static Stored counting(const std::string& name, const std::vector<std::int64_t>& shape) {
    Stored tensor{name, "F32", shape, ""};
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) elements *= size;
    for (std::int64_t i = 0; i < elements; ++i) {
      const auto value = static_cast<float>(i);
      tensor.bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return tensor;
  }
  static std::string file_of(const std::vector<Stored>& tensors) {
    Json header = Json::object();
    std::string data;
    for (const Stored& tensor : tensors) {
      const std::size_t begin = data.size();
      data += tensor.bytes;
      header[tensor.name] = {{"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
    }
    return with_header(header.dump(), data);
  }
  static std::string with_header(const std::string& header, const std::string& data) {
    std::string length(8, '\0');
    const std::uint64_t size = header.size();
    std::memcpy(length.data(), &size, 8);
    return length + header + data;
  }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  static NamesOfWeights names(const WeightSource& source) {
    return {"the test", [source](const std::string&) { return std::optional(source); },
            [](const std::string& stored) { return stored; }, [](const std::string&) { return false; },
            [](const std::string&) { return std::string(); }};
  }
  std::string refusal(const std::string& name) const {
    try {
      WeightFiles((folder_ / name).string());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

  const fs::path folder_;
};

// Every part of the weight is what it is of the whole.
std::vector<float> read_in_parts(const PlacedWeight& weight) {
  std::vector<float> whole(static_cast<std::size_t>(weight.rows * weight.columns));
  const auto elements = static_cast<std::int64_t>(whole.size());
  weight.read(0, elements, whole.data());
  for (std::int64_t first = 0; first < elements; ++first)
    for (std::int64_t count = 1; first + count <= elements; ++count) {
      std::vector<float> part(static_cast<std::size_t>(count));
      weight.read(first, count, part.data());
      for (std::int64_t i = 0; i < count; ++i)
        EXPECT_EQ(part[static_cast<std::size_t>(i)], whole[static_cast<std::size_t>(first + i)])
            << first << " " << count;
    }
  return whole;
}

TEST_F(WeightsTest, RowsColumnsAndStacksComeToTheirPlaces) {
  const WeightFiles files(write("a.safetensors", file_of({counting("x", {2, 3}), counting("y", {2, 3})})));
  const auto placed = [&](WeightSource source, std::vector<std::int64_t> shape) {
    const Placing placing = place_weights({{"w", std::move(shape), false}}, names(source), files, {});
    EXPECT_EQ(placing.found, 1) << (placing.problems.empty() ? "" : placing.problems.front());
    return read_in_parts(placing.weights.at("w"));
  };
  EXPECT_THAT(placed({.names = {"x"}}, {2, 3}), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(placed({.names = {"x"}, .is_transposed = true}, {3, 2}), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(placed({.names = {"x", "y"}}, {4, 3}), ElementsAre(0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5));
  EXPECT_THAT(placed({.names = {"x"}, .from_row = 1, .may_be_longer = true}, {1, 3}), ElementsAre(3, 4, 5));
  EXPECT_THAT(placed({.names = {"x"}, .plus_row = "y"}, {2, 3}), ElementsAre(0, 2, 4, 3, 5, 7));
}

TEST_F(WeightsTest, WhatARunAddsToAModelBeginsAnew) {
  const WeightFiles files(write("a.safetensors", file_of({counting("x", {2, 3})})));
  NamesOfWeights one = names({.names = {"x"}});
  one.source = [](const std::string& weight) {
    return weight == "w" ? std::optional(WeightSource{.names = {"x"}}) : std::nullopt;
  };
  const Placing added = place_weights({{"w", {2, 3}, false}, {"w.adapter", {2, 1}, true}}, one, files, {});
  EXPECT_TRUE(added.problems.empty());
  EXPECT_FALSE(added.weights.contains("w.adapter"));
  const Placing unnamed = place_weights({{"w", {2, 3}, false}, {"v", {2, 1}, false}}, one, files, {});
  ASSERT_EQ(unnamed.problems.size(), 1U);
  EXPECT_THAT(unnamed.problems.front(), HasSubstr("nothing says where v stands in"));
}

TEST_F(WeightsTest, GroupsOfRowsAreSharedInTheOrderOfTheirPlaces) {
  // Two groups of two queries, a key and a value, each of one row of two.
  const WeightFiles files(write("a.safetensors", file_of({counting("qkv", {8, 2})})));
  NamesOfWeights by_place = names({});
  by_place.source = [](const std::string& weight) {
    return std::optional(WeightSource{.names = {"qkv"},
                                      .groups = "key_heads",
                                      .place = weight == "q"   ? 0
                                               : weight == "k" ? 1
                                                               : 2});
  };
  KeyValues keys;
  keys["key_heads"] = 2;
  const Placing placing =
      place_weights({{"q", {4, 2}, false}, {"v", {2, 2}, false}, {"k", {2, 2}, false}}, by_place, files, keys);
  ASSERT_EQ(placing.found, 3);
  EXPECT_THAT(read_in_parts(placing.weights.at("q")), ElementsAre(0, 1, 2, 3, 8, 9, 10, 11));
  EXPECT_THAT(read_in_parts(placing.weights.at("k")), ElementsAre(4, 5, 12, 13));
  EXPECT_THAT(read_in_parts(placing.weights.at("v")), ElementsAre(6, 7, 14, 15));
}

TEST_F(WeightsTest, SixteenBitsBecomeTheSameNumbers) {
  const std::string halves("\x00\x3C\x00\xC0\x01\x00\xFF\x7B", 8);  // 1, -2, 2^-24, 65504
  const std::string brains("\x80\x3F\x00\xC0\x80\x00\x7F\x7F", 8);  // 1, -2, 2^-126, 3.39e38
  const WeightFiles files(write("a.safetensors", file_of({{"h", "F16", {4}, halves}, {"b", "BF16", {4}, brains}})));
  std::vector<float> out(4);
  read_numbers(files.tensors().at("h"), 0, 4, out.data());
  EXPECT_THAT(out, ElementsAre(1, -2, 0x1p-24F, 65504));
  read_numbers(files.tensors().at("b"), 0, 4, out.data());
  EXPECT_THAT(out, ElementsAre(1, -2, 0x1p-126F, 0x1.FEp127F));
}

TEST_F(WeightsTest, WhatDoesNotFitIsTold) {
  const WeightFiles files(
      write("a.safetensors", file_of({counting("x", {2, 3}), {"i", "I64", {1}, std::string(8, '\0')}})));
  const auto problems = [&](const std::string& name, std::vector<std::int64_t> shape) {
    std::string all;
    for (const std::string& line :
         place_weights({{"w", std::move(shape), false}}, names({.names = {name}}), files, {}).problems)
      all += line + "\n";
    return all;
  };
  EXPECT_THAT(problems("x", {3, 2}),
              HasSubstr("tensor 'x' of " + files.path() + " is [2, 3], and w is [3, 2]; allowed: [3, 2]"));
  EXPECT_THAT(problems("z", {2, 3}), HasSubstr("holds no tensor 'z', which w begins with"));
  EXPECT_THAT(problems("i", {1}), HasSubstr("is of type I64; allowed: F32, F16 or BF16"));
  EXPECT_THAT(problems("x", {2, 3}), HasSubstr("tensor 'i' of " + files.path() + " [1] has no place in the network"));
}

TEST_F(WeightsTest, AFolderHasOneFileOrAnIndex) {
  EXPECT_THAT(refusal("."), HasSubstr("there is no safetensors file in "));
  write("pytorch_model.bin", "x");
  EXPECT_THAT(refusal("."), HasSubstr("pytorch_model.bin, which may hold code and is not read"));
  write("one.safetensors", file_of({counting("x", {2})}));
  EXPECT_EQ(refusal("."), "accepted");
  write("two.safetensors", file_of({counting("y", {2})}));
  EXPECT_THAT(refusal("."), HasSubstr("there are 2 safetensors files in "));
  write("model.safetensors.index.json", R"({"weight_map": {"x": "one.safetensors", "y": "two.safetensors"}})");
  EXPECT_EQ(refusal("."), "accepted");
  EXPECT_EQ(WeightFiles(folder_.string()).tensors().size(), 2U);
  EXPECT_THAT(refusal("missing"), HasSubstr("there is no "));
  EXPECT_THAT(refusal("pytorch_model.bin"), HasSubstr("is another kind of file"));
}

TEST_F(WeightsTest, AnIndexStaysInItsFolder) {
  write("one.safetensors", file_of({counting("x", {2})}));
  for (const char* name : {"../one.safetensors", "/etc/passwd", "..", ".hidden.safetensors", "a/one.safetensors", ""}) {
    write("model.safetensors.index.json", Json{{"weight_map", {{"x", name}}}}.dump());
    EXPECT_THAT(refusal("model.safetensors.index.json"), HasSubstr("is no name of a safetensors file")) << name;
  }
  write("model.safetensors.index.json", R"({"weight_map": {"z": "one.safetensors"}})");
  EXPECT_THAT(refusal("."), HasSubstr("'one.safetensors' holds no tensor 'z'"));
  write("model.safetensors.index.json", R"({"weight_map": {"x": "gone.safetensors"}})");
  EXPECT_THAT(refusal("."), HasSubstr("gone.safetensors"));
  write("model.safetensors.index.json", R"({"weight_map": {}})");
  EXPECT_THAT(refusal("."), HasSubstr("weight_map: names no tensors"));
}

// FIPS 180-4's example.
constexpr const char* kSumOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST_F(WeightsTest, FilesHaveTheChecksumsThatTheyWerePublishedWith) {
  const std::string path = (folder_ / "model.safetensors").string(), list = (folder_ / "SHA256SUMS").string();
  const auto write = [](const std::string& to, const std::string& text) {
    std::ofstream(to, std::ios::binary) << text;
  };
  write(path, "abc");
  EXPECT_EQ(sha256_of(path), kSumOfAbc);
  EXPECT_EQ(check_sums({path}).files, 0) << "nothing says one";
  for (const char* between : {"  ", " *", "  ./"}) {
    write(list, std::string(64, 'a') + "  other.safetensors\n\n" + kSumOfAbc + between + "model.safetensors\n");
    EXPECT_EQ(check_sums({path}).files, 1) << between;
    EXPECT_EQ(check_sums({path}).bytes, 3);
  }
  write(path, "abd");
  const auto refused = [&] {
    try {
      check_sums({path, path});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  EXPECT_THAT(refused(), HasSubstr("model.safetensors is damaged, or another file: its SHA-256 is"));
  EXPECT_THAT(refused(), HasSubstr("SHA256SUMS says " + std::string(kSumOfAbc) + "; allowed: "));
  for (const char* line : {"model.safetensors", "BA7816  model.safetensors", "\xff\xfe"}) {
    write(list, "\n" + std::string(line) + "\n");
    EXPECT_THAT(refused(), HasSubstr("SHA256SUMS:2: is no checksum with a file's name behind it; allowed: ")) << line;
  }
}

TEST_F(WeightsTest, FilesOfACacheHaveTheirChecksumsForNames) {
  const fs::path blobs = folder_ / "blobs", snapshot = folder_ / "snapshots" / "main";
  fs::create_directories(blobs), fs::create_directories(snapshot);
  const std::string path = (snapshot / "model.safetensors").string();
  fs::create_symlink(fs::path("../../blobs") / kSumOfAbc, path);
  std::ofstream(blobs / kSumOfAbc) << "abc";
  EXPECT_EQ(check_sums({path}).files, 1);
  std::ofstream(blobs / kSumOfAbc) << "abcd";
  EXPECT_THROW(check_sums({path}), ConfigError);
  const std::string other = (snapshot / "config.json").string();  // small files are named by Git's SHA-1
  fs::create_symlink("../../blobs/" + std::string(40, 'a'), other);
  EXPECT_EQ(published_sum(other), std::nullopt);
}

TEST_F(WeightsTest, EveryFileAndIndexIsReadOrRefused) {
  test::Dice dice(test::fuzz_seed(320));
  test::FuzzAccount account("weights");
  const std::string whole = file_of({counting("x", {2, 3}), counting("y", {4})});
  const Json header = Json::parse(whole.substr(8, whole.size() - 8 - 40));
  const Json index = {{"metadata", {{"total_size", 40}}},
                      {"weight_map", {{"x", "a.safetensors"}, {"y", "a.safetensors"}}}};
  for (int i = 0; i < test::fuzz_inputs(5); ++i) {
    Json changed = header, map = index;
    test::mutate_json(dice.below(2) == 0 ? changed : map, dice);
    std::string file =
        with_header(changed.dump(-1, ' ', false, Json::error_handler_t::replace), whole.substr(whole.size() - 40));
    if (dice.below(4) == 0) test::mutate_bytes(file, dice, {"{", "[", "\"", std::string(8, '\xFF')});
    write("a.safetensors", file);
    write("model.safetensors.index.json", map.dump(-1, ' ', false, Json::error_handler_t::replace));
    account.count(true, [&] {
      try {
        const WeightFiles files(folder_.string());
        const Placing placing = place_weights({{"w", {2, 3}, false}}, names({.names = {"x"}}), files, {});
        if (placing.found == 1) read_in_parts(placing.weights.at("w"));
        return placing.found == 1;
      } catch (const ConfigError&) {
        return false;
      }
    });
  }
  account.close(0.9);
}

}  // namespace
}  // namespace tandem
