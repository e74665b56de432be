// The files of checkpoints and the order in which they come and go: what a killed process or a full disk leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "runtime/checkpoint/stage_file.hpp"
#include "runtime/checkpoint/stages.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/tandem-checkpoint-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    scenario_ = testing::gpt_scenario("on_demand", 1 << 20);
    scenario_.steps = 100;
    scenario_.checkpoint = {directory_, 0, 2};
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::vector<StageBucket> buckets() {
    return {{"", DType::F32, layout_.get(), reinterpret_cast<std::byte*>(values_.data())}};
  }
  // A whole checkpoint: all of the network's stages, of zeros.
  void save(std::int32_t step, const std::string& untold = "") {
    begin_checkpoint(directory_, step);
    Manifest manifest{step, facts_of(scenario_, false), {}, {}};
    std::erase_if(manifest.run, [&](const auto& fact) { return fact.first == untold; });
    if (scenario_.workload.precision == DType::F16)
      manifest.loss_scale = {{"scale", 4}, {"good_steps", 1}, {"beta1_power", 0.81}, {"beta2_power", 0.998}};
    for (StageContents& stage : stages_of(scenario_)) {
      std::vector<std::vector<std::byte>> bytes;
      for (StageBucket& bucket : stage.buckets)
        bucket.begin = bytes.emplace_back(static_cast<std::size_t>(bucket.layout->elements * 4)).data();
      const std::string path = stage_file_path(partial_folder(directory_, step), stage.stage);
      const FileSum sum = write_stage(path, stage.stage, stage.buckets);
      manifest.files.push_back({stage.stage + ".safetensors", sum.bytes, sum.checksum.text()});
    }
    commit_checkpoint(scenario_.checkpoint, step, to_text(manifest));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory_)) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string resume_error(const std::string& path) {
    try {
      resume_from(scenario_, path, /*verify=*/true);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  static void flip_a_bit(const std::string& path, std::int64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(at);
    file.put(byte);
  }

  std::string directory_;
  Scenario scenario_;
  std::shared_ptr<const Layout> layout_ = LayoutBuilder().add("norm", {3}).add("weight", {2, 5}).build();
  std::vector<float> values_ = std::vector<float>(static_cast<std::size_t>(layout_->elements), 1.5F);
};

// The format by hand: length, header, tensors one after another without the padding of the bucket.
TEST_F(CheckpointFilesTest, AStageIsASafetensorsFile) {
  values_[0] = 7;
  const std::string path = directory_ + "/head.safetensors";
  const FileSum sum = write_stage(path, "head", buckets());
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_EQ(sum.bytes, static_cast<std::int64_t>(bytes.size()));
  EXPECT_EQ(sum.checksum, checksum_of(bytes));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(bytes.size(), 8 + length + (3 + 10) * sizeof(float));
  EXPECT_EQ(length % 8, 0u);
  const std::string header = bytes.substr(8, length);
  EXPECT_THAT(header, HasSubstr(R"("head.norm":{"dtype":"F32","shape":[3],"data_offsets":[0,12]})"));
  EXPECT_THAT(header, HasSubstr(R"("head.weight":{"dtype":"F32","shape":[2,5],"data_offsets":[12,52]})"));
  float first = 0;
  std::memcpy(&first, bytes.data() + 8 + length, sizeof first);
  EXPECT_EQ(first, 7);

  std::vector<float> read(values_.size(), -1);
  read_stage(path, "head", {{"", DType::F32, layout_.get(), reinterpret_cast<std::byte*>(read.data())}});
  EXPECT_EQ(read[0], 7);
  EXPECT_EQ(read[2], 1.5F);
  EXPECT_EQ(read[3], 0) << "padding is zero";
  EXPECT_THROW(read_stage(path, "block0", buckets()), DeviceError);
}

// The published test vector of XXH3-128 for no bytes, and of the xxhsum program for three.
TEST(ChecksumTest, IsXxh3) {
  EXPECT_EQ(checksum_of("").text(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(checksum_of("abc").text(), "06b05ab6733a618578af5f94892f3950");
}

// A build that knows format 2 alone would give a run of format 3 other samples.
TEST_F(CheckpointFilesTest, TheFormatSaysHowSamplesAreNumbered) {
  for (const bool by_micro_batch : {false, true}) {
    Manifest manifest;
    manifest.step = 2;
    manifest.files = {{"head.safetensors", 0, std::string(32, '0')}};
    manifest.data = {by_micro_batch, std::string("\0\n a\xff", 5), ""};
    const std::string text = to_text(manifest);
    EXPECT_THAT(text, HasSubstr(by_micro_batch ? "\"format\": 2" : "\"format\": 3"));
    std::ofstream(directory_ + "/" + kManifestName) << text;
    const SavedData read = read_manifest(directory_).data;
    EXPECT_EQ(read.by_micro_batch, by_micro_batch);
    EXPECT_EQ(read.characters, manifest.data.characters);
  }
}

TEST_F(CheckpointFilesTest, KeepsTheLatestAndSweepsAwayWhatIsPartial) {
  fs::create_directories(directory_ + "/step-00000001.partial/inside");
  for (std::int32_t step : {2, 4, 6}) save(step);
  fs::create_directories(directory_ + "/step-00000007.partial");
  EXPECT_THAT(names(), ElementsAre("step-00000004", "step-00000006", "step-00000007.partial"));
  save(8);
  EXPECT_THAT(names(), ElementsAre("step-00000006", "step-00000008"));
  scenario_.checkpoint.keep = 1;
  save(10);
  EXPECT_THAT(names(), ElementsAre("step-00000010"));
}

// A folder without a manifest is what a process leaves that was killed while it deleted, or wrote.
TEST_F(CheckpointFilesTest, AFolderWithoutAManifestDoesNotCount) {
  save(2);
  fs::create_directories(directory_ + "/step-00000004");
  resume_from(scenario_, directory_, true);
  EXPECT_EQ(scenario_.first_step, 2);
  EXPECT_EQ(scenario_.resume_folder, directory_ + "/step-00000002");
}

TEST_F(CheckpointFilesTest, WhatComesAfterACheckpointThatARunWentBackToIsSetAside) {
  save(2);
  save(4);
  resume_from(scenario_, directory_ + "/step-00000002/", true);
  const CheckpointLock lock(scenario_);
  save(3);
  EXPECT_THAT(names(), ElementsAre("step-00000002", "step-00000003", "step-00000004.superseded"));
}

TEST_F(CheckpointFilesTest, OneRunAtATimeSavesAndOnlyIntoItsOwnDirectory) {
  {
    const CheckpointLock lock(scenario_);
    EXPECT_THROW(CheckpointLock{scenario_}, ConfigError);
  }
  save(2);
  EXPECT_THROW(CheckpointLock{scenario_}, ConfigError) << "a run from the start would mix its states with another's";
  resume_from(scenario_, directory_, true);
  const CheckpointLock lock(scenario_);
}

TEST_F(CheckpointFilesTest, WhereNothingIsSavedResumingSaysSo) {
  EXPECT_THAT(resume_error(directory_), HasSubstr("holds no complete checkpoint"));
  EXPECT_THAT(resume_error(directory_ + "/none"), HasSubstr("is no folder"));
}

TEST_F(CheckpointFilesTest, DamageIsNamedAndTheLatestWholeOneBeforeIt) {
  save(2);
  save(4);
  // Of its last number, which only the checksum knows, then of its header.
  const std::string damaged = directory_ + "/step-00000004/head.safetensors";
  flip_a_bit(damaged, static_cast<std::int64_t>(fs::file_size(damaged)) - 2);
  EXPECT_THAT(resume_error(directory_), HasSubstr("step-00000004/head.safetensors is damaged: its checksum differs"));
  flip_a_bit(damaged, 200);
  EXPECT_THAT(resume_error(directory_), HasSubstr("step-00000004/head.safetensors is damaged"));
  EXPECT_THAT(resume_error(directory_), HasSubstr("--resume " + directory_ + "/step-00000002"));
  fs::resize_file(directory_ + "/step-00000004/head.safetensors", 100);
  EXPECT_THAT(resume_error(directory_), HasSubstr("100 bytes, not"));
  flip_a_bit(directory_ + "/step-00000002/manifest.json", 40);
  EXPECT_THAT(resume_error(directory_), HasSubstr("there is no earlier checkpoint that is whole"));
  EXPECT_THAT(resume_error(directory_ + "/step-00000002"), HasSubstr("manifest.json is damaged"));
}

TEST_F(CheckpointFilesTest, AnotherRunIsRefusedWithKeyAndValues) {
  save(2);
  scenario_.workload.keys["hidden"] = 128;
  EXPECT_THAT(resume_error(directory_), HasSubstr("workload.hidden: the checkpoint"));
  EXPECT_THAT(resume_error(directory_), HasSubstr("has 64, the scenario has 128"));
  scenario_.workload.keys["hidden"] = 64;
  scenario_.workload.precision = DType::BF16;
  EXPECT_THAT(resume_error(directory_), HasSubstr("has fp32, the scenario has bf16"));
  scenario_.workload.precision = DType::F32;
  scenario_.policy.name = "zero_offload";
  scenario_.policy.options["delayed_update"] = "true";
  EXPECT_THAT(resume_error(directory_), HasSubstr("policy.delayed_update"));
  scenario_.policy.options.clear();
  scenario_.policy.name = "lsp_offload";
  EXPECT_THAT(resume_error(directory_), HasSubstr("policy.name (its update): the checkpoint"));
  EXPECT_THAT(resume_error(directory_), HasSubstr("has plain, the scenario has in a subspace"));
  scenario_.policy.name = "zero_offload";
  scenario_.optimizer.learning_rate = 0.5;
  scenario_.limits.host_bytes = 1 << 30;
  EXPECT_EQ(resume_error(directory_), "");
}

struct Change {
  const char* key;
  void (*make)(Scenario&);
};

// All that changes the mathematics of a run, and nothing that does not: the second list is what README says may change.
TEST_F(CheckpointFilesTest, WhatChangesTheMathematicsIsRefusedByNameWithBothValues) {
  scenario_.workload.precision = DType::F16;  // so that the loss scale counts
  scenario_.optimizer.schedule = "linear";
  scenario_.optimizer.weight_decay = 0.1;
  scenario_.validation = {5, 2, 0.1};
  save(2);
  const Change changes[] = {
      {"seed", [](Scenario& s) { s.seed = 5; }},
      {"workload.family", [](Scenario& s) { s.workload.family = "bert"; }},
      {"workload.layers", [](Scenario& s) { s.workload.keys["layers"] = 5; }},
      {"workload.hidden", [](Scenario& s) { s.workload.keys["hidden"] = 128; }},
      {"workload.heads", [](Scenario& s) { s.workload.keys["heads"] = 2; }},
      {"workload.vocabulary", [](Scenario& s) { s.workload.keys["vocabulary"] = 300; }},
      {"workload.sequence", [](Scenario& s) { s.workload.keys["sequence"] = 16; }},
      {"workload.batch", [](Scenario& s) { s.workload.batch = 4; }},
      {"workload.micro_batches", [](Scenario& s) { s.workload.micro_batches = 2; }},
      {"workload.precision", [](Scenario& s) { s.workload.precision = DType::BF16; }},
      {"workload.attention", [](Scenario& s) { s.workload.keys["attention"] = "unfused"; }},
      {"workload.tied_embedding", [](Scenario& s) { s.workload.keys["tied_embedding"] = false; }},
      {"workload.linear_tiles", [](Scenario& s) { s.workload.keys["linear_tiles"] = 2; }},
      {"workload.loss_tiles", [](Scenario& s) { s.workload.keys["loss_tiles"] = 2; }},
      {"workload.devices", [](Scenario& s) { s.workload.devices = 2; }},
      {"optimizer.name", [](Scenario& s) { s.optimizer.name = "adam"; }},
      {"optimizer.betas", [](Scenario& s) { s.optimizer.beta1 = 0.8; }},
      {"optimizer.betas", [](Scenario& s) { s.optimizer.beta2 = 0.99; }},
      {"optimizer.epsilon", [](Scenario& s) { s.optimizer.epsilon = 1e-6; }},
      {"optimizer.weight_decay", [](Scenario& s) { s.optimizer.weight_decay = 0.2; }},
      {"optimizer.decay", [](Scenario& s) { s.optimizer.decay = "matrices"; }},
      {"optimizer.clip_norm", [](Scenario& s) { s.optimizer.clip_norm = 1; }},
      {"optimizer.state_bits", [](Scenario& s) { s.optimizer.state_bits = 8; }},
      {"optimizer.loss_scaling", [](Scenario& s) { s.optimizer.loss_scaling = false; }},
      {"optimizer.loss_scale_interval", [](Scenario& s) { s.optimizer.loss_scale_interval = 7; }},
      {"optimizer.schedule", [](Scenario& s) { s.optimizer.schedule = "cosine"; }},
      {"optimizer.warmup_steps", [](Scenario& s) { s.optimizer.warmup_steps = 3; }},
      {"optimizer.decay_steps", [](Scenario& s) { s.optimizer.decay_steps = 30; }},
      {"validation.fraction", [](Scenario& s) { s.validation.fraction = 0.2; }},
  };
  const Scenario same = scenario_;
  const auto value_of = [](const Scenario& s, const std::string& key) {
    for (const auto& [name, value] : facts_of(s, false))
      if (name == key) return value;
    return std::string("none");
  };
  for (const Change& change : changes) {
    Scenario& changed = scenario_ = same;
    change.make(changed);
    const std::string error = resume_error(directory_);
    EXPECT_THAT(error, HasSubstr(std::string("--resume: ") + change.key + ": the checkpoint")) << change.key;
    EXPECT_THAT(error, HasSubstr("has " + value_of(same, change.key) + ", the scenario has " +
                                 value_of(scenario_, change.key) + "; give"));
  }
  const std::pair<const char*, void (*)(Scenario&)> allowed[] = {
      {"steps", [](Scenario& s) { s.steps = 200; }},
      {"learning_rate", [](Scenario& s) { s.optimizer.learning_rate = 0.5; }},
      {"final_learning_rate", [](Scenario& s) { s.optimizer.final_learning_rate = 1e-5; }},
      {"initial_loss_scale", [](Scenario& s) { s.optimizer.initial_loss_scale = 8; }},
      {"policy", [](Scenario& s) { s.policy.name = "resident"; }},
      {"limits", [](Scenario& s) { s.limits.host_bytes = 1 << 30; }},
      {"machine", [](Scenario& s) { s.machine.name = "another"; }},
      {"recompute", [](Scenario& s) { s.workload.recompute = "block"; }},
      {"checkpoint",
       [](Scenario& s) {
         s.checkpoint = {"elsewhere", 7, 9};
       }},
      {"validation.every", [](Scenario& s) { s.validation.every = 3; }},
      {"validation.batches", [](Scenario& s) { s.validation.batches = 3; }},
  };
  for (const auto& [key, change] : allowed) {
    scenario_ = same;
    change(scenario_);
    EXPECT_EQ(resume_error(directory_), "") << key;
  }
}

TEST_F(CheckpointFilesTest, AllThatDiffersIsNamedAtOnce) {
  save(2);
  scenario_.seed = 9;
  scenario_.optimizer.epsilon = 1e-6;
  const std::string error = resume_error(directory_);
  EXPECT_THAT(error, HasSubstr("seed: the checkpoint"));
  EXPECT_THAT(error, HasSubstr("optimizer.epsilon: the checkpoint"));
}

TEST_F(CheckpointFilesTest, AnEmptyNameIsRefusedAndStartsNothingAnew) {
  EXPECT_THAT(resume_error(""), HasSubstr("--resume: is empty; name a folder of checkpoints, or leave --resume out"));
}

// Manifests of builds that did not say it all go on as they did, and a person is told.
TEST_F(CheckpointFilesTest, AnOlderManifestGoesOnWithARemarkOnWhatItDoesNotSay) {
  save(2, "optimizer.epsilon");
  scenario_.optimizer.epsilon = 1e-6;
  EXPECT_EQ(resume_error(directory_), "");
  ASSERT_EQ(scenario_.warnings.size(), 1U);
  EXPECT_THAT(scenario_.warnings.front(), HasSubstr("does not say what it had of optimizer.epsilon, the data"));
  scenario_.seed = 9;
  EXPECT_THAT(resume_error(directory_), HasSubstr("seed: the checkpoint"));
}

// Manifests of others, with checksums that are right: what they say is refused, or the files do not bear it out.
TEST_F(CheckpointFilesTest, AHostileManifestIsRefusedBeforeAnythingRuns) {
  save(2);
  const std::string folder = directory_ + "/step-00000002";
  const Manifest whole = read_manifest(folder);
  using ManifestChange = void (*)(Manifest&);
  const std::pair<const char*, ManifestChange> changes[] = {
      {"files: are none", [](Manifest& m) { m.files.clear(); }},
      {"files: head.safetensors is missing", [](Manifest& m) { m.files.pop_back(); }},
      {"is given twice", [](Manifest& m) { m.files.push_back(m.files.front()); }},
      {"files.name: is no name", [](Manifest& m) { m.files.front().name = "../../x.safetensors"; }},
      {"files.name: is no name", [](Manifest& m) { m.files.front().name = "/dev/zero"; }},
      {"files.bytes: is no such whole number", [](Manifest& m) { m.files.front().bytes = -1; }},
      {"bytes, not 1", [](Manifest& m) { m.files.front().bytes = 1; }},
      {"files.xxh3_128: is no checksum", [](Manifest& m) { m.files.front().checksum = ""; }},
      {"other.safetensors is missing",
       [](Manifest& m) {
         m.files.push_back({"other.safetensors", 0, m.files[0].checksum});
       }},
      {"step: is no such whole number; allowed: 1 to", [](Manifest& m) { m.step = -1; }},
      {"step: is no such whole number", [](Manifest& m) { m.step = 0; }},
      {"characters: are out of order", [](Manifest& m) { m.data.characters = "ba"; }},
      {"good_steps: is missing",
       [](Manifest& m) {
         m.loss_scale = {{"scale", 1}};
       }},
      {"loss_scale.scale: is no scale",
       [](Manifest& m) {
         m.loss_scale = {{"scale", -1}, {"good_steps", 0}, {"beta1_power", 0}, {"beta2_power", 0}};
       }},
  };
  for (const auto& [expected, change] : changes) {
    Manifest manifest = whole;
    change(manifest);
    std::ofstream(folder + "/" + kManifestName) << to_text(manifest);
    EXPECT_THAT(resume_error(folder), HasSubstr(expected));
  }
  const std::pair<const char*, std::string> texts[] = {
      {"byte 1: is no JSON", "x"},
      {"nested deeper than 32 levels", std::string(200'000, '[') + std::string(200'000, ']')},
      {"format: is missing", "{}"},
      {"is no object", "[]"},
      {"format: is no such whole number", "{\"format\": 1e30}"},
      {"is larger than 16777216 bytes", std::string(17 << 20, ' ')},
  };
  for (const auto& [expected, text] : texts) {
    std::ofstream(folder + "/" + kManifestName) << text;
    EXPECT_THAT(resume_error(folder), HasSubstr(expected));
  }
}

// Stage files whose checksums are right, as their manifest was written for them.
TEST_F(CheckpointFilesTest, AHostileStageFileIsRefusedBeforeAnythingRuns) {
  save(2);
  const std::string folder = directory_ + "/step-00000002", path = folder + "/head.safetensors";
  Manifest manifest = read_manifest(folder);
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), sizeof length);
  const auto tensors = [](const std::string& json) {
    std::string file(8, '\0');
    const std::uint64_t size = json.size();
    std::memcpy(file.data(), &size, sizeof size);
    return file + json + std::string(8, 'x');
  };
  const std::string two_in_one = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                 R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::pair<const char*, std::string> files[] = {
      {"is cut short", ""},
      {"its header of 18446744073709551615 bytes does not fit", std::string(8, '\xff')},
      {"does not fit", whole.substr(0, 8)},
      {"is no JSON", tensors("hello")},
      {"nested deeper", tensors(std::string(200'000, '['))},
      {"is in two tensors", tensors(two_in_one)},
      {"goes on after byte", tensors("{}")},
      {"shape: is no such whole number", tensors(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}})")},
      {"shape: is too large",
       tensors(R"({"a":{"dtype":"F32","shape":[281474976710656,281474976710656],"data_offsets":[0,8]}})")},
      {"data_offsets: is no such whole number", tensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})")},
      {"data_offsets: is no such whole number", tensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})")},
      {"data_offsets: are of other bytes", tensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})")},
      {"dtype: is unknown", tensors(R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})")},
      {"it holds no tensor head.", tensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})")},
  };
  for (const auto& [expected, bytes] : files) {
    std::ofstream(path, std::ios::binary) << bytes;
    for (Manifest::File& file : manifest.files)
      if (file.name == "head.safetensors")
        file = {file.name, static_cast<std::int64_t>(bytes.size()), checksum_of(bytes).text()};
    std::ofstream(folder + "/" + kManifestName) << to_text(manifest);
    EXPECT_THAT(resume_error(folder), HasSubstr(expected));
    EXPECT_THAT(resume_error(folder), HasSubstr("head.safetensors"));
  }
}

TEST_F(CheckpointFilesTest, WhatIsNoFileInACheckpointIsRefusedAtOnce) {
  ::alarm(20);
  for (const char* name : {"manifest.json", "head.safetensors"}) {
    save(2);
    const std::string path = directory_ + "/step-00000002/" + name;
    fs::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_THAT(resume_error(directory_ + "/step-00000002"), HasSubstr(path + " is a named pipe"));
    fs::remove(path);
    fs::create_symlink("/dev/zero", path);
    EXPECT_THAT(resume_error(directory_ + "/step-00000002"), HasSubstr(path + " is a device"));
    fs::remove_all(directory_ + "/step-00000002");
  }
  ::alarm(0);
}

// The file size limit stands for a full disk: a write that comes short, then fails.
TEST_F(CheckpointFilesTest, AFailedWriteNamesTheFileAndLeavesWhatWasComplete) {
  save(2);
  values_.assign(1 << 20, 0);
  layout_ = LayoutBuilder().add("weight", {1 << 20}).build();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{1 << 20, before.rlim_max};
  ASSERT_NE(std::signal(SIGXFSZ, SIG_IGN), SIG_ERR);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  std::string message;
  begin_checkpoint(directory_, 4);
  try {
    write_stage(stage_file_path(partial_folder(directory_, 4), "head"), "head", buckets());
  } catch (const DeviceError& error) {
    message = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(message, HasSubstr("step-00000004.partial/head.safetensors: File too large"));
  EXPECT_THAT(message, HasSubstr("checkpoints that were complete stay"));
  EXPECT_FALSE(fs::exists(directory_ + "/step-00000004.partial/head.safetensors")) << "a full disk needs its room";
  discard_checkpoint(directory_, 4);
  EXPECT_THAT(names(), ElementsAre("step-00000002"));
  EXPECT_EQ(resume_error(directory_), "");
}

}  // namespace
}  // namespace tandem
