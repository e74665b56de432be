// Folders that `tandem import` wrote, and folders from strangers: read, or refused with the place and what is allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/base/errors.hpp"
#include "core/model/adapters.hpp"
#include "core/model/imported/module.hpp"
#include "core/model/imported/network.hpp"
#include "core/model/imported/operators.hpp"
#include "core/model/imported/text_logits.hpp"
#include "core/model/passes.hpp"
#include "tests/common/fuzz.hpp"
#include "tests/common/source_dir.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string text_of_file(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A copy of tests/data/imported/small that a test may spoil.
class ImportedFolder : public ::testing::Test {
 protected:
  ImportedFolder() {
    fs::remove_all(folder_);
    fs::copy(source_path("tests/data/imported/small"), folder_, fs::copy_options::recursive);
  }
  ~ImportedFolder() override { fs::remove_all(folder_); }
  void write(const std::string& file, const std::string& text) const { std::ofstream(folder_ / file) << text; }
  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = text_of_file(folder_ / file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(file, text.replace(at, from.size(), to));
  }
  // "" where it is read, and all passes of it can be planned.
  std::string refusal(std::int64_t batch = 3) const {
    try {
      const ImportedNetwork import = read_import(folder_.string(), batch);
      for (const NetworkModule& m : import.network.modules)
        for (const Bits wanted : {Bits{0}, Bits{1}})
          derive(m.module, {.input_gradients = wanted, .gradients_so_far = 0, .contributed = 0, .where = {}});
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
  const fs::path folder_ = fs::temp_directory_path() / ("tandem_imported_" + std::to_string(::getpid()));
};

TEST_F(ImportedFolder, IsRead) {
  const ImportedNetwork import = read_import(folder_.string(), 3);
  ASSERT_EQ(import.network.modules.size(), 5U);
  EXPECT_EQ(import.network.modules[1].module, import.network.modules[3].module) << "equal blocks are one module";
  EXPECT_TRUE(import.network.modules[1].recomputable && !import.network.modules[4].recomputable);
  EXPECT_EQ(import.network.modules[1].weight_name(0), "blocks.0.norm1.weight");
  EXPECT_EQ(import.network.batch[0].shape, Shape({3, 5}, DType::I64));
  EXPECT_EQ(import.network.batch[0].below, 11);
}

// Of what a loss is made of, what leads to logits stays; its dropout is no text's.
TEST_F(ImportedFolder, IsAskedForLogits) {
  const auto refusal_of_text = [&] {
    try {
      with_text_logits(read_import(folder_.string(), 3).network, 3);
      return std::string();
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(refusal_of_text(),
              ::testing::HasSubstr("generate: blocks draws dropout; allowed: an import of the module in eval()"));
  const std::string path = "programs/blocks.yaml", kept = ", 0.09999999999999998, ";
  std::string text = text_of_file(folder_ / path);
  for (std::size_t at = text.find(kept); at != std::string::npos; at = text.find(kept))
    text.replace(at, kept.size() + 1, ", 1.0");
  for (std::size_t at = text.find("dropout_factors"); at != std::string::npos; at = text.find("dropout_factors"))
    text.replace(at, 15, "full");
  write(path, text);
  const Network network = with_text_logits(read_import(folder_.string(), 3).network, 3);
  ASSERT_EQ(network.batch.size(), 2U) << "tokens and a constant, no targets";
  EXPECT_EQ(network.batch[0].name, "input0");
  EXPECT_THAT(network.load.sizes, ::testing::ElementsAre(3, 5, 11, 2)) << "texts, tokens, words, the constant's place";
  EXPECT_EQ(network.modules[1].module, network.modules[3].module) << "equal blocks are one module";
  const Module& head = *network.modules.back().module;
  EXPECT_EQ(network.modules.back().inputs.size(), 2U) << "what blocks made, and the table of tokens";
  EXPECT_EQ(head.locals[static_cast<std::size_t>(head.outputs.at(0))].shape, Shape({3, 11}, DType::F32));
  for (const NetworkModule& m : network.modules) EXPECT_FALSE(trains(*m.module)) << m.name;
}

// Sums of products of batch and sequence, as far as they are whole numbers.
TEST_F(ImportedFolder, ReadsSizesByBatchAndSequence) {
  replace("network.yaml", "any_batch: true", "any_batch: true\nsequence: 5\nany_sequence: true");
  replace("network.yaml", "[b, 5], below: 11}\n- {name: input1", "[2bss-9bs, 2bs-s-b-18], below: 11}\n- {name: input1");
  const auto refusal_of = [&](const char* size) {
    replace("network.yaml", "2bs-s-b-18", size);
    const std::string why = refusal();
    replace("network.yaml", size, "2bs-s-b-18");
    return why;
  };
  // b 3, s 5: 2 x 75 - 135 = 15, and 30 - 5 - 3 - 18 = 4.
  EXPECT_THAT(refusal(), ::testing::HasSubstr("is int64 [15, 4]"));
  for (const char* wrong : {"2bx", "b+", "b++1", "2b3", "--b", "99999999999999999bbss", "1+1+1+1+1+1+1+1+1", "b s"})
    EXPECT_THAT(refusal_of(wrong), ::testing::HasSubstr("a whole number, or one by batch and sequence")) << wrong;
}

// What backward reads, by hand: a block's input, what its norms, products and activations keep, and no factors of
// dropout, which are drawn again.
TEST_F(ImportedFolder, KeepsWhatItsProgramSaves) {
  const auto module = read_import(folder_.string(), 3).network.modules[1].module;
  const Passes passes = derive(module, {.input_gradients = 1, .gradients_so_far = 0, .contributed = 0, .where = {}});
  EXPECT_EQ(passes.keeps_inputs, 1U);
  EXPECT_TRUE(passes.backward_reads_weights);
  EXPECT_EQ(passes.kept.size(), program_of(*module)->saved.size());
  EXPECT_TRUE(passes.forward.draws_random() && passes.backward.draws_random());
  // Three products of two matrices and one attention forward; twice as many products backward.
  const auto count = [](const Pass& pass, KernelKind kind) {
    return std::count_if(pass.kernels.begin(), pass.kernels.end(), [&](const Kernel& k) { return k.kind == kind; });
  };
  EXPECT_EQ(count(passes.forward, KernelKind::Gemm), 4);
  EXPECT_EQ(count(passes.backward, KernelKind::Gemm), 8);
  EXPECT_EQ(count(passes.forward, KernelKind::Attention), 1);
}

// Gradients of what is frozen are not made, nor what only they need; equal blocks whose frozen weights differ do.
TEST_F(ImportedFolder, LeavesOutWhatIsFrozen) {
  const auto all = read_import(folder_.string(), 3).network;
  replace("network.yaml", "frozen: []", "frozen: [blocks.0.attention.qkv.weight, blocks.0.norm1.bias]");
  const auto some = read_import(folder_.string(), 3).network;
  EXPECT_NE(some.modules[1].module, some.modules[2].module);
  EXPECT_EQ(some.modules[2].module, some.modules[3].module);
  const DeriveOptions options{.input_gradients = 1, .gradients_so_far = 0, .contributed = 0, .where = {}};
  const Passes before = derive(all.modules[1].module, options), passes = derive(some.modules[1].module, options);
  EXPECT_TRUE(passes.backward_reads_frozen && passes.backward_reads_weights && !before.backward_reads_frozen);
  EXPECT_LT(passes.backward.kernels.size(), before.backward.kernels.size());
  EXPECT_LT(passes.kept.size(), before.kept.size()) << "a frozen weight's gradient is what read its input";
  EXPECT_EQ(layout_of(*some.modules[1].module, false)->fields.size(), 2U);
}

// By hand: qkv is [24, 8], so that its adapter has [2, 8] and [24, 2]; two more products forward, five backward.
TEST_F(ImportedFolder, TakesAdapters) {
  const auto module = read_import(folder_.string(), 3).network.modules[1].module;
  std::vector<bool> chosen(module->weights.size());
  chosen[2] = true;
  ASSERT_TRUE(adapts(*module, 2));
  EXPECT_FALSE(adapts(*module, 0)) << "a norm";
  const auto with = adapted(*module, chosen, {2, 4});
  ASSERT_EQ(with->weights.size(), module->weights.size() + 2);
  EXPECT_EQ(with->weights[with->weights.size() - 2].name, "attention.qkv.lora_A.weight");
  EXPECT_EQ(with->weights[with->weights.size() - 2].shape, Shape({2, 8}, DType::F32));
  EXPECT_EQ(with->weights.back().shape, Shape({24, 2}, DType::F32));
  const DeriveOptions options{.input_gradients = 1, .gradients_so_far = 0, .contributed = 0, .where = {}};
  const auto products = [](const Pass& pass) {
    return std::count_if(pass.kernels.begin(), pass.kernels.end(),
                         [](const Kernel& k) { return k.kind == KernelKind::Gemm; });
  };
  const Passes before = derive(module, options), passes = derive(with, options);
  EXPECT_EQ(products(passes.forward), products(before.forward) + 2);
  EXPECT_EQ(products(passes.backward), products(before.backward) + 5);
}

struct Spoiled {
  const char *name, *file, *from, *to, *message;
};
constexpr Spoiled kSpoiled[] = {
    {"format", "network.yaml", "format: 1", "format: 2", "network.yaml:1:9: format: is '2'; allowed: 1"},
    {"key", "network.yaml", "samples", "sampels", "network.yaml:5:1: sampels: is unknown; allowed: format"},
    {"operator", "programs/blocks.yaml", "call: native_layer_norm,", "call: system,",
     "is no operator that an import may call"},
    {"reads_files", "programs/blocks.yaml", "call: native_layer_norm,", "call: from_file,",
     "is no operator that an import may call"},
    {"path", "network.yaml", "program: before", "program: ../../before",
     "modules.0.program: is '../../before'; allowed: a name of letters"},
    {"shape", "programs/blocks.yaml", "shape: [24, 8]", "shape: [24, 9]", "has another inner size than the other"},
    {"huge", "programs/blocks.yaml", "shape: [24, 8]", "shape: [24000000000, 80000000000]",
     "makes more numbers than a tensor has"},
    {"value", "programs/blocks.yaml", "take: [x0, [8]", "take: [x9, [8]", "'x9' is no value that is known here"},
    {"arguments", "programs/blocks.yaml", "take: [x0, [8], ", "take: [x0, ", "is not what native_layer_norm takes"},
    {"results", "programs/blocks.yaml", "out: [v0, v1, v2]", "out: [v0, v1]", "does not name what the call makes"},
    {"twice", "programs/blocks.yaml", "out: [v0, v1, v2]", "out: [v0, v1, v1]", "'v1' is there already"},
    {"gradient", "programs/blocks.yaml", "gradient: v112", "gradient: v110", "is fp32 [8]; allowed: fp32 [3, 5, 8]"},
    {"loss", "programs/after.yaml", "loss: true", "loss: false", "ends with no loss, or not last"},
    {"weight", "network.yaml", "{weight: tokens.weight}", "{weight: fade}", "is no weight of an earlier module"},
    {"later", "network.yaml", "{module: before, output: 0}", "{module: blocks_2, output: 0}", "is no earlier module"},
    {"output", "network.yaml", "{module: before, output: 0}", "{module: before, output: 7}", "is 7; allowed: 0 to 0"},
    {"frozen", "network.yaml", "frozen: []", "frozen: [nobody]", "'nobody' is no module's weight"},
    {"trained", "programs/after.yaml", "of: norm.bias, shape: [8], gradient: v27", "of: norm.bias, shape: [8]",
     "'norm.bias' has no gradient, and is trained; allowed: a gradient, or its name in frozen"},
    {"below", "network.yaml", "below: 11", "below: 0", "is 0; allowed: 1 to"},
    {"number", "programs/blocks.yaml", "1e-05", "1e-05x", "is '1e-05x'; allowed: a number"},
    {"sum", "programs/blocks.yaml", "take: [s0, ", "take: [d0, ",
     "does not begin one sum with s0; allowed: one add.Tensor"},
    {"statistics", "programs/blocks.yaml", "x0, [8], v1, v2,", "x0, [8], v1, w0,", "is not what forward keeps"},
};

class SpoiledFolder : public ImportedFolder, public ::testing::WithParamInterface<Spoiled> {};

TEST_P(SpoiledFolder, IsRefused) {
  const Spoiled& spoiled = GetParam();
  replace(spoiled.file, spoiled.from, spoiled.to);
  const std::string why = refusal();
  EXPECT_THAT(why, ::testing::HasSubstr(spoiled.message));
  EXPECT_THAT(why, ::testing::ContainsRegex("^[^:]+/[a-z/]+\\.yaml:[0-9]+:[0-9]+: [^:]+: .+; allowed: .+$"));
}

INSTANTIATE_TEST_SUITE_P(All, SpoiledFolder, ::testing::ValuesIn(kSpoiled),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(ImportedFolder, LeadsNowhereElse) {
  fs::remove(folder_ / "programs/before.yaml");
  fs::create_symlink("/etc/hostname", folder_ / "programs/before.yaml");
  EXPECT_THAT(refusal(), ::testing::HasSubstr("leads out of its folder"));
}

TEST_F(ImportedFolder, IsMissing) {
  fs::remove(folder_ / "programs/before.yaml");
  EXPECT_THAT(refusal(), ::testing::HasSubstr("before.yaml"));
  fs::remove(folder_ / "network.yaml");
  EXPECT_THAT(refusal(), ::testing::HasSubstr("network.yaml"));
}

TEST_F(ImportedFolder, KeepsToItsBatchUnlessImportedForAny) {
  replace("network.yaml", "any_batch: true", "any_batch: false");
  EXPECT_EQ(refusal(2), "");
  EXPECT_EQ(refusal(3), "workload.batch: is 3, which " + folder_.string() +
                            " was not imported for; allowed: 2, or any after an import with --dynamic batch");
}

// Bytes, words and lines of all files changed at random: refused in words, or read and planned.
TEST_F(ImportedFolder, FuzzedIsReadOrRefused) {
  const char* const kFiles[] = {"network.yaml", "programs/before.yaml", "programs/blocks.yaml", "programs/after.yaml"};
  const std::vector<std::string> words = {
      "-1",   "0",  "9223372036854775807", "1e999", "null",   "[]", "{}",   "x0",   "v3",
      "w2",   "4b", "999999999b",          "b-9",   "[4, 4]", "mm", "view", "true", "\n",
      "\xff", "../"};
  test::Dice dice(test::fuzz_seed(11));
  const int count = test::fuzz_inputs(30);
  int read = 0;
  for (int i = 0; i < count; ++i) {
    const char* file = kFiles[static_cast<std::size_t>(i) % std::size(kFiles)];
    const std::string whole = text_of_file(folder_ / file);
    std::string changed = whole;
    for (std::size_t k = dice.below(3) + 1; k-- > 0;) test::mutate_bytes(changed, dice, words);
    write(file, changed);
    SCOPED_TRACE("input " + std::to_string(i));
    const std::string why = refusal();
    read += why.empty();
    EXPECT_TRUE(why.empty() || why.find("allowed") != std::string::npos) << why << text_of_file(folder_ / file);
    write(file, whole);
  }
  EXPECT_GT(read, 0) << "none was close to right";
  EXPECT_LT(read, count) << "none was wrong";
}

// The importer refuses by the same list.
TEST(ImportedOperators, AreTheImportersOwn) {
  std::istringstream file(text_of_file(source_path("python/tandem/importer/operators.txt")));
  const std::vector<std::string> names = operator_names();
  const std::set<std::string> here(names.begin(), names.end()),
      there{std::istream_iterator<std::string>(file), std::istream_iterator<std::string>()};
  EXPECT_EQ(here, there);
  EXPECT_EQ(here.size(), names.size()) << "one is there twice";
  for (const std::string& name : names)
    for (const char letter : find_operator(name)->signature)
      EXPECT_NE(kSignatureLetters.find(letter), std::string_view::npos) << name;
}

}  // namespace
}  // namespace tandem
