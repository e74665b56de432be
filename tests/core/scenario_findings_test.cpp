// Several errors in one file: all are told, each once, at the line and column of what was written, in file order.
#include <algorithm>
#include <random>

#include "core/yaml/position.hpp"
#include "tests/common/source_dir.hpp"
#include "tests/core/scenario_cases.hpp"

namespace tandem::test {
namespace {

// One error: the line that it is planted in, told by how it begins, and what becomes of it. `key` is its message's;
// the message stands at the first byte of the value, or of the key where the key itself is wrong, or of the first
// line of `map` where a key is missing.
struct Plant {
  const char* line;
  const char* becomes;  // "" takes the line out
  const char* key;
  enum class At { Value, Key, Map } at = At::Value;
  const char* map = "";
};

struct Document {
  std::vector<std::string> lines;
  std::vector<Plant> plants;
  bool is_profile = false;
};

// Every kind of error in places that do not depend on one another.
const Document& scenario_document() {
  static const Document kDocument = {
      {"machine:",
       "  derive_from: round_numbers",
       "  copies:",
       "    shared_bandwidth: 12GB/s",
       "    h2d: {latency: 5us}",
       "  cpu:",
       "    op: 10us",
       "limits:",
       "  device_bytes: 8GiB",
       "  cores: 4",
       "workload:",
       "  family: gpt",
       "  layers: 2",
       "  hidden: 64",
       "  heads: 4",
       "  vocabulary: 256",
       "  sequence: 16",
       "  batch: 2",
       "  precision: fp32",
       "  recompute: none",
       "  tied_embedding: true",
       "optimizer:",
       "  name: adamw",
       "  learning_rate: 1e-3",
       "  betas: [0.9, 0.99]",
       "  schedule: cosine",
       "  warmup_steps: 2",
       "  decay_steps: 6",
       "validation:",
       "  every: 2",
       "policy:",
       "  name: cotrain",
       "  separation: 3",
       "  prefetch: 4",
       "truth:",
       "  noise: 0.05",
       "steps: 4",
       "seed: 1"},
      {{"    shared_bandwidth", "    shared_bandwidth: 9GB/s", "machine.copies.shared_bandwidth"},
       {"    op", "    op: 10", "machine.cpu.op"},
       {"  device_bytes", "  device_bytes: 8Gib", "limits.device_bytes"},
       {"  cores", "  cores: four", "limits.cores"},
       {"  layers", "  layers: two", "workload.layers"},
       {"  hidden", "  hidden: 66", "workload.hidden"},
       {"  vocabulary", "", "workload.vocabulary", Plant::At::Map, "  family"},
       {"  sequence", "  sequence: -16", "workload.sequence"},
       {"  batch", "  batch: 0", "workload.batch"},
       {"  precision", "  precision: fp61", "workload.precision"},
       {"  recompute", "  recomput: none", "workload.recomput", Plant::At::Key},
       {"  tied_embedding", "  inputs: 3", "workload.inputs", Plant::At::Key},
       {"  name: adamw", "  name: adagrad", "optimizer.name"},
       {"  learning_rate", "  learning_rate: fast", "optimizer.learning_rate"},
       {"  betas", "  betas: [0.9]", "optimizer.betas"},
       {"  decay_steps", "  decay_steps: 1", "optimizer.decay_steps"},
       {"  every", "  every: often", "validation.every"},
       {"  separation", "  separation: -4", "policy.separation"},
       {"  prefetch", "  prefetch: x", "policy.prefetch"},
       {"  noise", "  noise: 2", "truth.noise"},
       {"steps", "step: 4", "step", Plant::At::Key},
       {"seed", "seed: [1]", "seed"}}};
  return kDocument;
}

const Document& profile_document() {
  static const Document kDocument = {
      {"tiers:",
       "  device:",
       "    capacity: 1GiB",
       "    bandwidth: 100GB/s",
       "  host_pinned:",
       "    capacity: 8GiB",
       "    bandwidth: 20GB/s",
       "compute:",
       "  processor: cpu",
       "  peak:",
       "    fp32: 1TFLOPS",
       "    fp16: 1TFLOPS",
       "  launch: 1us",
       "  op: 1us",
       "copies:",
       "  h2d:",
       "    bandwidth: 10GB/s",
       "  d2h:",
       "    bandwidth: 10GB/s",
       "  small_copy: 4KiB",
       "cpu:",
       "  cores: 4",
       "  peak: 100GFLOPS",
       "  optimizer:",
       "    rate: 0.1Gparameters/s",
       "loader:",
       "  bandwidth: 1GB/s"},
      {{"    capacity: 1GiB", "    capacity: 1GIB", "tiers.device.capacity"},
       {"    capacity: 8GiB", "", "tiers.host_pinned.capacity", Plant::At::Map, "    bandwidth: 20"},
       {"  processor", "  processor: tpu", "compute.processor"},
       {"    fp16", "    fp16: 200PFLOPS", "compute.peak.fp16"},
       {"  launch", "  launsh: 1us", "compute.launsh", Plant::At::Key},
       {"  op", "  op: 2s", "compute.op"},
       {"    bandwidth: 10GB/s", "    bandwidth: 30GB/s", "copies.h2d.bandwidth"},
       {"  small_copy", "  small_copy: {valu: 4KiB}", "copies.small_copy.valu"},
       {"  cores", "  cores: 4.5", "cpu.cores"},
       {"  peak: 100", "  peak: '100GFLOPS", "yaml"},
       {"    rate", "    rate: -1Gparameters/s", "cpu.optimizer.rate"},
       {"  bandwidth: 1GB/s", "  bandwidth: 20TB/s", "loader.bandwidth"}},
      true};
  return kDocument;
}

std::size_t line_of(const std::vector<std::string>& lines, const std::string& start) {
  return static_cast<std::size_t>(
      std::find_if(lines.begin(), lines.end(), [&](const std::string& line) { return line.starts_with(start); }) -
      lines.begin());
}

std::size_t column_of(const std::string& line, bool of_value) {
  if (!of_value) return line.find_first_not_of(' ') + 1;
  const std::size_t brace = line.find('{');
  return brace != std::string::npos ? brace + 2 : line.find(": ") + 3;
}

// Plants the errors and gives what each message must begin with, in file order.
std::vector<std::string> plant(std::vector<std::string>& lines, const std::vector<Plant>& plants) {
  for (const Plant& error : plants)
    if (error.becomes[0] != '\0') lines[line_of(lines, error.line)] = error.becomes;
  for (const Plant& error : plants)
    if (error.becomes[0] == '\0') lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(line_of(lines, error.line)));
  struct Place {
    std::size_t line, column;
    std::string key;
  };
  std::vector<Place> places;
  for (const Plant& error : plants) {
    const std::size_t line = line_of(lines, error.at == Plant::At::Map ? error.map : error.becomes);
    const bool is_value = error.at == Plant::At::Value;
    places.push_back({line + 1, column_of(lines[line], is_value), error.key});
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::make_pair(a.line, a.column) < std::make_pair(b.line, b.column);
  });
  std::vector<std::string> out;
  for (const Place& place : places)
    out.push_back("s.yaml:" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " + place.key +
                  ": ");
  return out;
}

std::string text_of(const std::vector<std::string>& lines) { return join(lines, "\n") + "\n"; }

std::vector<std::string> findings_of(const std::string& text, bool is_profile,
                                     const std::vector<std::string>& overrides = {}) {
  try {
    if (is_profile) {
      parse_profile(text, "s.yaml");
    } else {
      parse_scenario(text, "s.yaml", overrides);
    }
  } catch (const ConfigError& error) {
    return error.findings();
  }
  return {};
}

void expect_all_told(const Document& document, const std::vector<Plant>& plants) {
  std::vector<std::string> lines = document.lines;
  const std::vector<std::string> expected = plant(lines, plants);
  const std::string text = text_of(lines);
  const std::vector<std::string> findings = findings_of(text, document.is_profile);
  bool is_right = findings.size() == expected.size();
  for (std::size_t i = 0; is_right && i < expected.size(); ++i) is_right = findings[i].starts_with(expected[i]);
  EXPECT_TRUE(is_right) << "told:\n"
                        << join(findings, "\n") << "\nplanted:\n"
                        << join(expected, "\n") << "\nin:\n"
                        << text;
}

void expect_all_subsets_told(const Document& document, int count) {
  ASSERT_EQ(findings_of(text_of(document.lines), document.is_profile), std::vector<std::string>());
  std::vector<Plant> plants;
  for (const Plant& error : document.plants)
    if (std::string(error.key) != "yaml") plants.push_back(error);
  for (const Plant& error : plants) expect_all_told(document, {error});
  std::mt19937_64 random(20240607);
  for (int i = 0; i < count; ++i) {
    std::shuffle(plants.begin(), plants.end(), random);
    expect_all_told(document, {plants.begin(), plants.begin() + 2 + static_cast<std::ptrdiff_t>(random() % 4)});
  }
  expect_all_told(document, plants);
}

TEST(ScenarioFindings, AllErrorsOfAScenarioAreTold) { expect_all_subsets_told(scenario_document(), 150); }

TEST(ScenarioFindings, AllErrorsOfAProfileAreTold) { expect_all_subsets_told(profile_document(), 150); }

// What is no YAML cannot be read further: that alone is told.
TEST(ScenarioFindings, BrokenYamlIsTheOnlyError) {
  std::vector<std::string> lines = profile_document().lines;
  plant(lines, {profile_document().plants[0], profile_document().plants[9]});
  const std::vector<std::string> findings = findings_of(text_of(lines), true);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].find(": yaml: "), std::string::npos) << findings[0];
}

// An error does not bring others about that vanish with it.
TEST(ScenarioFindings, AnErrorBringsNoOthersAbout) {
  const std::string head = "machine: round_numbers\n";
  const char* const workloads[] = {
      "workload: {family: gpt, layers: 2, hiden: 64, heads: 4, vocabulary: 256, sequence: 16}\n",
      "workload: {family: gtp, layers: 2, inputs: 4}\n",
      "workload: {family: gpt, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: 16, batch: 1, "
      "loss_tiles: 16, recompute: optimall, activation_bytes: 100MiB}\n",
      "workload: {family: gpt, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: 16, recomput: optimal, "
      "activation_bytes: 100MiB}\n",
      "workload: {family: gpt, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: 16, batch: many, "
      "loss_tiles: 1000}\n",
      "workload: {family: gpt_decode, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: 1x, prompt: 4, "
      "new_tokens: 400}\n"};
  for (const char* workload : workloads) {
    const std::vector<std::string> findings = findings_of(head + workload, false);
    EXPECT_EQ(findings.size(), 1u) << join(findings, "\n");
  }
  const std::string gpt = "workload: {family: gpt, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: 16}\n";
  for (const std::string& text :
       {"machine: nothing\n" + gpt,
        "machine: {derive_from: nothing, cpu: {cores: 2}}\n" + gpt + "limits: {disk_bytes: 1GiB}\n",
        head + gpt + "policy: {name: cotrian, separation: -4, k: 3}\n"}) {
    const std::vector<std::string> findings = findings_of(text, false);
    EXPECT_EQ(findings.size(), 1u) << join(findings, "\n");
  }
}

// Errors in every section beside a machine that is not there and a family that is not known.
TEST(ScenarioFindings, WhatIsMissingHidesNothing) {
  const std::vector<std::string> findings = findings_of(
      "machine: nothing\nworkload: {family: gtp, layers: x}\npolicy: {name: cotrain, separation: -4}\nsteps: 0\n",
      false, {"no_path", "truth.noise=7"});
  ASSERT_EQ(findings.size(), 7u) << join(findings, "\n");
  const char* const starts[] = {"s.yaml:1:10: machine: there is no profile 'nothing'",
                                "s.yaml:2:20: workload.family: 'gtp' is not known",
                                "s.yaml:2:33: workload.layers: 'x'",
                                "s.yaml:3:37: policy.separation: '-4' is not allowed",
                                "s.yaml:4:8: steps: '0' is zero",
                                "--set no_path: --set: 'no_path' has no '='",
                                "--set truth.noise: truth.noise: '7' is too large"};
  for (std::size_t i = 0; i < findings.size(); ++i) EXPECT_TRUE(findings[i].starts_with(starts[i])) << findings[i];
}

// What a family refuses is told beside errors that it does not depend on, in its own section as well.
TEST(ScenarioFindings, RefusalsOfFamiliesStandBesideOtherErrors) {
  const std::vector<std::string> findings = findings_of(
      "machine: round_numbers\nworkload: {family: bert, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: "
      "16, "
      "precision: fp61,\n  linear_tiles: 2, loss_tiles: 1000}\npolicy: {name: cotrain, separation: x}\n",
      false);
  ASSERT_EQ(findings.size(), 4u) << join(findings, "\n");
  EXPECT_TRUE(findings[0].starts_with("s.yaml:2:101: workload.precision: 'fp61'")) << findings[0];
  EXPECT_TRUE(findings[1].starts_with("s.yaml:3:3: workload.linear_tiles: family 'bert' takes no such key"))
      << findings[1];
  EXPECT_EQ(findings[2],
            "s.yaml:3:32: workload.loss_tiles: 1000 is out of range; allowed: 1 to 128, the tokens of a micro-batch");
  EXPECT_TRUE(findings[3].starts_with("s.yaml:4:37: policy.separation: 'x'")) << findings[3];
}

TEST(ScenarioFindings, ARepeatedKeyIsOneErrorAmongOthers) {
  const std::vector<std::string> findings = findings_of(
      "machine: round_numbers\nsteps: 4\nworkload: {family: mlp, layers: 2, hidden: 8, inputs: x, classes: 2, inputs: "
      "y}\nsteps: z\n",
      false);
  ASSERT_EQ(findings.size(), 3u) << join(findings, "\n");
  EXPECT_TRUE(findings[0].starts_with("s.yaml:3:55: workload.inputs: 'x' is not")) << findings[0];
  EXPECT_EQ(findings[1], "s.yaml:3:70: inputs: the key is given twice; allowed: each key once");
  EXPECT_EQ(findings[2], "s.yaml:4:1: steps: the key is given twice; allowed: each key once");
}

TEST(ScenarioFindings, NoMoreThanAHundredAreTold) {
  std::string text = "machine: round_numbers\n";
  for (int i = 0; i < 5000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const std::vector<std::string> findings = findings_of(text, false);
  ASSERT_EQ(findings.size(), 101u);
  EXPECT_EQ(findings.back(), "s.yaml:102:1: file: has more errors than these 100; allowed: none; correct these first");
}

// What a flag contradicts in the file is the flag's fault.
TEST(ScenarioFindings, FlagsAreNamed) {
  const std::string gpt =
      "machine: round_numbers\nworkload: {family: gpt, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: "
      "16}\n";
  const std::string decode =
      "machine: round_numbers\nworkload: {family: gpt_decode, layers: 2, hidden: 64, heads: 4, vocabulary: 256, "
      "sequence: 16, prompt: 4, new_tokens: 8}\n";
  const struct {
    std::string text, flag, expected;
  } cases[] = {
      {gpt, "workload.heads=5",
       "workload.heads: 5 does not divide hidden (64) (s.yaml:2:44); allowed: a divisor of 64"},
      {gpt, "workload.hidden=66",
       "workload.hidden: 66 is not divisible by heads (4) (s.yaml:2:55); allowed: a multiple of 4"},
      {decode, "workload.sequence=11",
       "workload.sequence: prompt and new_tokens are 12 tokens, sequence only 11, workload.new_tokens (s.yaml:2:119), "
       "workload.prompt (s.yaml:2:104); allowed: at most sequence - prompt"},
      {gpt, "machine.tiers.host_pinned.bandwidth=5GB/s",
       "machine.tiers.host_pinned.bandwidth: 5GB/s is not plausible beside cpu.optimizer.rate of 1Gparameters/s (" +
           std::string(kSourceDir) +
           "/hardware_profiles/round_numbers.yaml:23:21): an update reads or writes at least 20 bytes a parameter; "
           "allowed: at least 20GB/s"},
      {gpt, "machine.copies.h2d.bandwidth=900GB/s",
       "machine.copies.h2d.bandwidth: 900GB/s is not plausible beside tiers.host_pinned.bandwidth of 100GB/s (" +
           std::string(kSourceDir) +
           "/hardware_profiles/round_numbers.yaml:7:46): a copy reads the one memory and writes the other; allowed: at "
           "most 100GB/s"},
      {gpt, "policy={name: cotrain, separation: -1}",
       "policy.separation: '-1' is not allowed; allowed: a whole number from 0 to 100000"}};
  for (const auto& c : cases) {
    const std::vector<std::string> findings = findings_of(c.text, false, {c.flag});
    ASSERT_EQ(findings.size(), 1u) << join(findings, "\n");
    EXPECT_EQ(findings[0], "--set " + c.flag.substr(0, c.flag.find('=')) + ": " + c.expected);
  }
}

}  // namespace
}  // namespace tandem::test
