// Good scenarios: defaults, units, machines, --set, and the text that a log keeps.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "core/run/load.hpp"
#include "core/scenario/text_lengths.hpp"
#include "tests/core/scenario_cases.hpp"

namespace tandem::test {
namespace {

constexpr const char* kMlp = "machine: m\nworkload: {family: mlp, layers: 2, hidden: 8, inputs: 4, classes: 2}\n";
constexpr const char* kGpt =
    "machine: m\nworkload: {family: gpt, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: 16}\n";

Scenario read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return read_scenario(text, "s.yaml", overrides, ".", fixed_names());
}

TEST(ScenarioLoad, Defaults) {
  const Scenario s = read(kGpt);
  EXPECT_EQ(s.machine.name, "m");
  EXPECT_EQ(s.limits.device_bytes, 0);
  EXPECT_EQ(s.limits.cores, 0);
  EXPECT_EQ(s.workload.batch, 8);
  EXPECT_EQ(s.workload.micro_batches, 1);
  EXPECT_EQ(s.workload.precision, DType::F16);
  EXPECT_EQ(s.workload.keys.text("attention"), "fused");
  EXPECT_EQ(s.workload.recompute, "none");
  EXPECT_TRUE(s.workload.keys.flag("tied_embedding"));
  EXPECT_EQ(s.workload.devices, 1);
  EXPECT_FALSE(s.workload.keys.has("stop_token"));
  EXPECT_EQ(s.optimizer.name, "adamw");
  EXPECT_EQ(s.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(s.optimizer.beta1, 0.9);
  EXPECT_EQ(s.optimizer.beta2, 0.999);
  EXPECT_EQ(s.optimizer.epsilon, 1e-8);
  EXPECT_EQ(s.optimizer.weight_decay, 0);
  EXPECT_EQ(s.optimizer.clip_norm, 0);
  EXPECT_EQ(s.optimizer.schedule, "constant");
  EXPECT_EQ(s.optimizer.warmup_steps, 0);
  EXPECT_EQ(s.optimizer.decay_steps, 0);
  EXPECT_EQ(s.optimizer.final_learning_rate, 0);
  EXPECT_EQ(s.optimizer.decay, "all");
  EXPECT_EQ(s.validation.every, 0);
  EXPECT_EQ(s.data_text, "corpus");
  EXPECT_EQ(s.data_images, "");
  EXPECT_EQ(s.policy.name, "cotrain");
  EXPECT_EQ(s.policy.options, (std::map<std::string, std::string>{{"separation", "auto"}}));
  EXPECT_EQ(s.truth.copy_time, 1);
  EXPECT_EQ(s.truth.noise, 0);
  EXPECT_EQ(s.steps, 4);
  EXPECT_EQ(s.seed, 0u);
  EXPECT_TRUE(s.warnings.empty());
}

TEST(ScenarioLoad, EveryKey) {
  const Scenario s = read(
      "machine: {derive_from: m, collective: {bandwidth: 10GB/s}}\nlimits: {device_bytes: 512MiB, host_bytes: 4GB, "
      "cores: 2}\n"
      "workload: {family: gpt, layers: 3, hidden: 96, heads: 6, vocabulary: 50257, sequence: 32, batch: 2,\n"
      "  micro_batches: 4, precision: fp32, attention: fused, recompute: block, dropout: 0, tied_embedding: false,\n"
      "  devices: 2, partition: parameters}\n"
      "optimizer: {name: adam, learning_rate: 3e-4, betas: [0.8, 0.95], epsilon: 1e-6, weight_decay: 0.1,\n"
      "  clip_norm: 1.5, schedule: cosine, warmup_steps: 2, decay_steps: 6, final_learning_rate: 3e-5,\n"
      "  decay: matrices}\n"
      "data: {text: /tmp/a.txt, images: /tmp/mnist}\nvalidation: {every: 3, batches: 2, fraction: 0.25}\n"
      "policy: {name: zero_offload, delayed_update: true}\n"
      "truth: {copy_time: 1.3, compute_time: 0.9, optimizer_time: 2, noise: 0.05}\nsteps: 7\n"
      "seed: 9223372036854775807\n");
  EXPECT_EQ(s.limits.device_bytes, 512 << 20);
  EXPECT_EQ(s.limits.host_bytes, 4000000000);
  EXPECT_EQ(s.limits.cores, 2);
  EXPECT_EQ(s.workload.keys.integer("layers"), 3);
  EXPECT_EQ(s.workload.keys.integer("heads"), 6);
  EXPECT_EQ(s.workload.keys.integer("vocabulary"), 50257);
  EXPECT_EQ(s.workload.micro_batches, 4);
  EXPECT_EQ(s.workload.precision, DType::F32);
  EXPECT_EQ(s.workload.recompute, "block");
  EXPECT_FALSE(s.workload.keys.flag("tied_embedding"));
  EXPECT_EQ(s.workload.devices, 2);
  EXPECT_EQ(s.workload.partition, "parameters");
  EXPECT_EQ(s.optimizer.name, "adam");
  EXPECT_EQ(s.optimizer.beta1, 0.8);
  EXPECT_EQ(s.optimizer.clip_norm, 1.5);
  EXPECT_EQ(s.optimizer.schedule, "cosine");
  EXPECT_EQ(s.optimizer.warmup_steps, 2);
  EXPECT_EQ(s.optimizer.decay_steps, 6);
  EXPECT_EQ(s.optimizer.final_learning_rate, 3e-5);
  EXPECT_EQ(s.optimizer.decay, "matrices");
  EXPECT_EQ(s.validation.every, 3);
  EXPECT_EQ(s.validation.batches, 2);
  EXPECT_EQ(s.validation.fraction, 0.25);
  EXPECT_EQ(s.data_text, "/tmp/a.txt");
  EXPECT_EQ(s.data_images, "/tmp/mnist");
  EXPECT_EQ(s.policy.options, (std::map<std::string, std::string>{{"delayed_update", "true"}}));
  EXPECT_EQ(s.truth.copy_time, 1.3);
  EXPECT_EQ(s.truth.optimizer_time, 2);
  EXPECT_EQ(s.steps, 7);
  EXPECT_EQ(s.seed, 9223372036854775807u);
}

TEST(ScenarioLoad, MeasuredLayersAndDecoding) {
  const Scenario layers = read(
      "machine: m\nworkload: {family: layers, layers: 48, layer_bytes: 200MiB, forward: 2.222ms, backward: 4.444ms, "
      "optimizer: 26ms}\n");
  EXPECT_EQ(layers.workload.keys.integer("layer_bytes"), 200 << 20);
  EXPECT_EQ(layers.workload.keys.integer("forward"), 2222000);
  EXPECT_EQ(layers.workload.keys.integer("backward"), 4444000);
  EXPECT_EQ(layers.workload.keys.integer("optimizer"), 26000000);
  const Scenario decode = read(
      "machine: m\nworkload: {family: gpt_decode, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: 16, "
      "prompt: 4, new_tokens: 8, stop_token: 0}\n");
  EXPECT_EQ(decode.workload.batch, 1);  // the family's own default
  EXPECT_EQ(decode.workload.keys.integer("prompt"), 4);
  EXPECT_EQ(decode.workload.keys.integer("new_tokens"), 8);
  EXPECT_EQ(decode.workload.keys.integer("stop_token"), 0);
}

// Of 600 texts; the same ones again, others for another seed, and others of new tokens than of prompts.
TEST(ScenarioLoad, TextsHaveLengthsOfTheirOwn) {
  const auto lengths = [](const std::string& distribution, const char* key = kPromptLengths, int seed = 0) {
    const Scenario s = read(
        "machine: m\nworkload: {family: gpt, layers: 2, hidden: 64, heads: 4, vocabulary: 256, "
        "sequence: 2048, batch: 60, micro_batches: 10}\ngenerate: {prompt: " +
        distribution + ", new_tokens: " + distribution + "}\nseed: " + std::to_string(seed) + "\n");
    const auto& all = s.workload.generate.integers(key);
    EXPECT_EQ(s.workload.generate.integer("prompt"),
              *std::ranges::max_element(s.workload.generate.integers(kPromptLengths)));
    EXPECT_EQ(s.steps, s.workload.generate.integer("new_tokens"));
    EXPECT_EQ(all.size(), 600U);
    return all;
  };
  const auto mean = [](const std::vector<std::int64_t>& of) {
    return std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
  };
  const auto in_turn = lengths("{values: [3, 9, 4]}");
  EXPECT_EQ(in_turn[0] + 10 * in_turn[1] + 100 * in_turn[2] + 1000 * in_turn[3], 3493);
  const auto uniform = lengths("{uniform: [5, 25]}");
  EXPECT_EQ(*std::ranges::min_element(uniform), 5);
  EXPECT_EQ(*std::ranges::max_element(uniform), 25);
  EXPECT_NEAR(mean(uniform), 15, 1);  // its deviation is 6 / sqrt(600) = 0.25
  EXPECT_EQ(lengths("{uniform: [5, 25]}"), uniform);
  EXPECT_NE(lengths("{uniform: [5, 25]}", kPromptLengths, 1), uniform);
  EXPECT_NE(lengths("{uniform: [5, 25]}", kOutputLengths), uniform);
  auto lognormal = lengths("{lognormal: {median: 100, sigma: 0.5, most: 300}}");
  EXPECT_NEAR(mean(lognormal), 100 * std::exp(0.125), 10);
  std::ranges::sort(lognormal);
  EXPECT_NEAR(static_cast<double>(lognormal[300]), 100, 10);
  EXPECT_EQ(lognormal.back(), 300);  // one in seventy is longer
  EXPECT_EQ(lengths("{lognormal: {median: 8, sigma: 0, most: 9}}"), std::vector<std::int64_t>(600, 8));
}

TEST(ScenarioLoad, ShortFormOfTheOptimizer) {
  const char* text =
      "machine: m\nworkload: {family: mlp, layers: 2, hidden: 8, inputs: 4, classes: 2, optimizer: adam}\n"
      "optimizer: {learning_rate: 0.1}\n";
  const Scenario s = read(text);
  EXPECT_EQ(s.optimizer.name, "adam");
  EXPECT_EQ(s.optimizer.learning_rate, 0.1);
  EXPECT_FALSE(s.workload.keys.has("optimizer"));
}

TEST(ScenarioLoad, OverridesApplyInOrder) {
  const Scenario s = read(kMlp, {"steps=9", "steps=11", "policy={name: on_demand}", "policy.home=disk",
                                 "limits.device_bytes=100MiB", "optimizer.betas=[0.5, 0.6]", "data.text=a=b"});
  EXPECT_EQ(s.steps, 11);
  EXPECT_EQ(s.policy.name, "on_demand");
  EXPECT_EQ(s.policy.options.at("home"), "disk");
  EXPECT_EQ(s.limits.device_bytes, 100 << 20);
  EXPECT_EQ(s.optimizer.beta2, 0.6);
  EXPECT_EQ(s.data_text, "a=b");
}

TEST(ScenarioLoad, OverridesReachIntoANamedMachine) {
  const Scenario s = read(kMlp, {"machine.copies.h2d.bandwidth=5GB/s", "machine.name=slower"});
  EXPECT_EQ(s.machine.h2d.bytes_per_s, 5e9);
  EXPECT_EQ(s.machine.d2h.bytes_per_s, 10e9);
  EXPECT_EQ(s.machine.name, "slower");
  EXPECT_EQ(read(kMlp, {"machine.cpu.cores=2", "machine=slow_bus"}).machine.h2d.bytes_per_s, 1e9);
}

TEST(ScenarioLoad, MachinesDeriveFromOthers) {
  const Scenario named = read("machine: slow_bus\n" + std::string(kMlp).substr(11));
  EXPECT_EQ(named.machine.name, "slow_bus");
  EXPECT_EQ(named.machine.h2d.bytes_per_s, 1e9);
  EXPECT_EQ(named.machine.d2h.bytes_per_s, 10e9);
  const Scenario inline_map =
      read("machine: {derive_from: slow_bus, cpu: {cores: 2}}\n" + std::string(kMlp).substr(11));
  EXPECT_EQ(inline_map.machine.name, "inline");
  EXPECT_EQ(inline_map.machine.cores, 2);
  EXPECT_EQ(inline_map.machine.h2d.bytes_per_s, 1e9);
}

TEST(ScenarioLoad, MachinesByPathBesideTheScenario) {
  const Scenario s = read_scenario("machine: machines/m.yaml\n" + std::string(kMlp).substr(11), "s.yaml", {},
                                   kHostileFolder, fixed_names());
  EXPECT_EQ(s.machine.name, "m");
  EXPECT_EQ(s.machine.path, kHostileFolder + "/machines/m.yaml");
}

// What a log keeps reads back to the same scenario, with nothing beside it.
TEST(ScenarioLoad, TextIsSelfContained) {
  const Scenario s = read(kGpt, {"machine.copies.h2d.latency=7us", "policy={name: cotrain, separation: 3}",
                                 "data.text='a \"odd\" # path: x'", "seed=7", "workload.optimizer=adam"});
  KnownNames without_files = fixed_names();
  without_files.profile_dirs.clear();
  const Scenario again = read_scenario(s.text, "log", {}, "/nonexistent", without_files);
  EXPECT_EQ(again.text, s.text);
  EXPECT_EQ(again.machine.text, s.machine.text);
  EXPECT_EQ(again.machine.name, "m");
  EXPECT_EQ(again.machine.h2d.latency_ns, 7000);
  EXPECT_EQ(again.data_text, "a \"odd\" # path: x");
  EXPECT_EQ(again.optimizer.name, "adam");
  EXPECT_EQ(again.policy.options.at("separation"), "3");
  EXPECT_EQ(again.seed, 7u);
  EXPECT_EQ(read_profile(s.machine.text, "log", without_files).text, s.machine.text);
}

TEST(ScenarioLoad, TextDoesNotDependOnLayout) {
  const Scenario flow = read(kMlp);
  const Scenario block = read(
      "# a comment\nmachine:   m\nworkload:\n  family: mlp\n  layers: 2\n  hidden: 8\n  inputs: 4\n  classes: 2\n");
  EXPECT_EQ(flow.text, block.text);
}

TEST(ScenarioLoad, WarnsOfADecayThatAConstantScheduleIgnores) {
  const std::string text =
      std::string(kMlp) + "optimizer: {schedule: linear, decay_steps: 4, final_learning_rate: 0.1}\n";
  EXPECT_TRUE(read(text, {"workload.precision=fp32"}).warnings.empty());
  const Scenario s = read(text, {"workload.precision=fp32", "optimizer.schedule=constant"});
  ASSERT_EQ(s.warnings.size(), 2u);
  EXPECT_EQ(s.warnings[0], "optimizer.decay_steps: has no effect with schedule: constant");
  EXPECT_EQ(s.warnings[1], "optimizer.final_learning_rate: has no effect with schedule: constant");
}

TEST(ScenarioLoad, CroppingsAreByModalityAndAScaleOfNoneIsToldOf) {
  const std::string text =
      std::string(kMlp) + "data: {pipeline: {image: {crop: random, flip: 0.5}, video: {kind: h264}}}\n";
  const Scenario s = read(text, {"workload.precision=fp32"});
  EXPECT_EQ(s.pipeline.cropping.at("image"), (Cropping{.random = true, .least_area = 0.08, .flip = 0.5}));
  EXPECT_EQ(s.pipeline.cropping.at("video"), Cropping());
  EXPECT_TRUE(s.warnings.empty());
  const Scenario scaled = read(text, {"workload.precision=fp32", "data.pipeline.image.crop_scale=0.25"});
  EXPECT_EQ(scaled.pipeline.cropping.at("image").least_area, 0.25);
  EXPECT_TRUE(scaled.warnings.empty());
  EXPECT_EQ(read(text, {"workload.precision=fp32", "data.pipeline.video.crop_scale=0.25"}).warnings,
            (std::vector<std::string>{"data.pipeline.video.crop_scale: has no effect with crop: centre"}));
}

TEST(ScenarioLoad, WarnsOfEmulatedPrecisionAndLimitsThatLimitNothing) {
  const Scenario s = read(
      "machine: m\nworkload: {family: bert, layers: 2, hidden: 16, heads: 2, vocabulary: 300, sequence: 4, precision: "
      "bf16}\npolicy: {name: resident}\nlimits: {device_bytes: 2GiB, cores: 64}\n");
  ASSERT_EQ(s.warnings.size(), 3u);
  EXPECT_EQ(s.warnings[0], "workload.precision: m has no units for bf16; it is emulated at fp32's rate");
  EXPECT_EQ(s.warnings[1], "limits.device_bytes: 2147483648 is more than the 1073741824 of m; it limits nothing");
  EXPECT_EQ(s.warnings[2], "limits.cores: 64 is more than the 4 of m; it limits nothing");
  EXPECT_EQ(s.workload.precision, DType::BF16);
  EXPECT_EQ(s.machine.peak_flops.at(DType::BF16), s.machine.peak_flops.at(DType::F32));
}

TEST(ScenarioLoad, WarnsOfHeadsThatFusedAttentionDoesNotTake) {
  const auto warnings = [](const std::string& precision, int hidden) {
    return read("machine: m\nworkload: {family: bert, layers: 2, hidden: " + std::to_string(hidden) +
                ", heads: 2, vocabulary: 300, sequence: 4, precision: " + precision + "}\npolicy: {name: resident}\n")
        .warnings;
  };
  ASSERT_EQ(warnings("fp16", 200).size(), 1u);
  EXPECT_EQ(
      warnings("fp16", 200)[0],
      "workload.heads: heads of 100 numbers are none for fused attention in 16 bits, which wants a multiple of 8 up "
      "to 256: attention is unfused, which takes more memory and time");
  EXPECT_TRUE(warnings("fp16", 208).empty());
  EXPECT_TRUE(warnings("fp32", 200).empty());
}

// The public functions use the names of this build.
TEST(ScenarioLoad, RegisteredNames) {
  const KnownNames names = registered_names();
  EXPECT_FALSE(names.workloads.empty());
  EXPECT_FALSE(names.policies.empty());
  EXPECT_EQ(names.scenario->find("workload")->schema.cases.size(), names.workloads.size());
  const auto& dirs = names.profile_dirs;
  EXPECT_NE(std::find(dirs.begin(), dirs.end(), source_path("hardware_profiles")), dirs.end());
}

// What a policy or a family refuses when it is made has the position of the key that it names.
TEST(ScenarioLoad, RefusalsOfPoliciesHavePositions) {
  const std::string text =
      "machine: round_numbers\nworkload: {family: gpt, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: "
      "16}\npolicy: {name: cotrain, separation: -4}\n";
  try {
    parse_scenario(text, "s.yaml");
    FAIL() << "separation -4 was accepted";
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("s.yaml:3:37: policy.separation: ")) << error.what();
  }
}

TEST(ScenarioLoad, CheckFileTellsProfilesFromScenarios) {
  EXPECT_EQ(check_file(source_path("hardware_profiles/round_numbers.yaml")).kind, CheckedFile::Kind::Profile);
  EXPECT_EQ(check_file(kHostileFolder + "/machines/m.yaml").kind, CheckedFile::Kind::Profile);
  EXPECT_THROW(check_file(kHostileFolder + "/machines/list.yaml"), ConfigError);
  EXPECT_THROW(check_file(kHostileFolder + "/machines/m.yaml", {"steps=4"}), ConfigError);
}

// Every scenario of the repository loads, and its text is a fixed point.
TEST(ScenarioLoad, ShippedScenarios) {
  for (const auto& file : std::filesystem::directory_iterator(source_path("scenarios"))) {
    if (file.path().extension() != ".yaml") continue;
    SCOPED_TRACE(file.path().string());
    const Scenario s = load_scenario(file.path().string());
    EXPECT_EQ(s.path, file.path().string());
    EXPECT_EQ(parse_scenario(s.text, "log").text, s.text);
  }
}

}  // namespace
}  // namespace tandem::test
