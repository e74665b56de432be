// Hostile input by the thousand: scenarios and profiles mutated as text and as trees. Every input is read or refused
// with a message that has a position; none crashes or takes long.
#include <algorithm>
#include <cctype>
#include <random>
#include <set>

#include "core/yaml/yaml_tree.hpp"
#include "tests/common/fuzz.hpp"
#include "tests/core/scenario_cases.hpp"

namespace tandem::test {
namespace {

constexpr int kMostTried = 3000;
constexpr int kPercent = 50;
constexpr int kParts = 4;  // each with a seed of its own: ctest runs them side by side

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> kSeeds = {
      "machine: m\nlimits: {device_bytes: 16GiB, host_bytes: 64GiB, cores: 8}\n"
      "workload:\n  family: gpt\n  layers: 24\n  hidden: 2048\n  heads: 16\n  vocabulary: 50257\n  sequence: 1024\n"
      "  batch: 8\n  precision: fp16\n  tied_embedding: true\n"
      "optimizer: {name: adamw, learning_rate: 1e-3, betas: [0.9, 0.999]}\n"
      "policy: {name: cotrain, separation: auto}\ntruth: {copy_time: 1.3, noise: 0.1}\nsteps: 4\nseed: 0\n",
      // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one text on three lines
      "machine: {derive_from: slow_bus, copies: {h2d: {bandwidth: {value: 5GB/s, source: guess}}}}\n"
      "workload: {family: layers, layers: 48, layer_bytes: 200MiB, forward: 2.222ms, backward: 4.444ms, optimizer: "
      "26ms}\npolicy: {name: zero_offload, delayed_update: true}\n",
      "machine: cycle_a\nworkload: {family: mlp, layers: 2, hidden: 8, inputs: 4, classes: 2, optimizer: adam}\n",
      read_text_file(source_path("hardware_profiles/round_numbers.yaml")),
      read_text_file(source_path("hardware_profiles/h200.yaml"))};
  return kSeeds;
}

const std::vector<Node>& seed_trees() {
  static const std::vector<Node> kTrees = [] {
    std::vector<Node> trees;
    for (const std::string& text : seeds()) trees.push_back(read_yaml(text, "seed"));
    return trees;
  }();
  return kTrees;
}

const std::vector<std::string>& hostile_words() {
  static const std::vector<std::string> kWords = {"",
                                                  "0",
                                                  "-1",
                                                  "1",
                                                  "010",
                                                  "0x10",
                                                  "1e999",
                                                  "-1e-999",
                                                  ".nan",
                                                  ".inf",
                                                  "-.inf",
                                                  "9223372036854775807",
                                                  "9223372036854775808",
                                                  "99999999999999999999999999",
                                                  "1_000",
                                                  "+5",
                                                  "true",
                                                  "yes",
                                                  "null",
                                                  "~",
                                                  "gpt",
                                                  "layers",
                                                  "24GiB",
                                                  "24",
                                                  "0B",
                                                  "-5GiB",
                                                  "1e30PiB",
                                                  "12us",
                                                  "55GB/s",
                                                  "1 GiB",
                                                  "GiB",
                                                  "1.5.2GiB",
                                                  "10TFLOPS",
                                                  "adam",
                                                  "auto",
                                                  "cotrain",
                                                  "m",
                                                  "self",
                                                  "cycle_b",
                                                  "/dev/zero",
                                                  "/",
                                                  "../..",
                                                  "m.yaml",
                                                  "name",
                                                  "value",
                                                  "source",
                                                  "derive_from",
                                                  "tiers",
                                                  "\x1b[2J",
                                                  "\xE2\x80\xAE",
                                                  "\xFF",
                                                  std::string(300, 'x'),
                                                  "'",
                                                  "\"",
                                                  "[",
                                                  "{",
                                                  "- ",
                                                  "? ",
                                                  "&a",
                                                  "*a",
                                                  "!!str",
                                                  "%YAML",
                                                  "---",
                                                  "#",
                                                  "|",
                                                  ">",
                                                  ": "};
  return kWords;
}

class Fuzzer {
 public:
  explicit Fuzzer(std::uint64_t seed) : random_(seed) {}

  std::string next() {
    const std::size_t seed = below(seeds().size());
    std::string text = seeds()[seed];
    // Mostly trees, which stay YAML; sometimes bytes, which try the parser.
    if (below(4) != 0) {
      Node root = seed_trees()[seed];
      for (std::size_t i = 0, n = 1 + below(3); i < n; ++i) mutate_tree(root);
      text = to_yaml(root);
    }
    if (below(4) == 0)
      for (std::size_t i = 0, n = 1 + below(4); i < n; ++i) mutate_bytes(text);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  template <typename T>
  T& pick(std::vector<T>& from) {
    return from[below(from.size())];
  }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

  // All nodes below the root, in order.
  static void collect(Node& node, std::vector<Node*>& out) {
    out.push_back(&node);
    for (Node& item : node.items) collect(item, out);
    for (Entry& entry : node.entries) collect(entry.value, out);
  }

  static Node scalar(const std::string& text, bool is_quoted) {
    Node node;
    node.kind = NodeKind::Scalar;
    node.text = text;
    node.is_quoted = is_quoted;
    return node;
  }

  Node nested(std::size_t depth, NodeKind kind) {
    Node node = scalar(pick(hostile_words()), false);
    for (std::size_t i = 0; i < depth; ++i) {
      Node outer;
      outer.kind = kind;
      if (kind == NodeKind::Map) {
        outer.entries.push_back({"value", {}, std::move(node)});
      } else {
        outer.items.push_back(std::move(node));
      }
      node = std::move(outer);
    }
    return node;
  }

  void mutate_tree(Node& root) {
    std::vector<Node*> nodes;
    collect(root, nodes);
    Node& node = *pick(nodes);
    Node other = *pick(nodes);
    switch (below(8)) {
      case 0:
        node = scalar(pick(hostile_words()), below(2) == 0);
        break;
      case 1:
        node = std::move(other);
        break;
      case 2:
        node = nested(below(70), below(2) == 0 ? NodeKind::Map : NodeKind::Sequence);
        break;
      case 3:
        if (!node.entries.empty())
          node.entries.erase(node.entries.begin() + static_cast<long>(below(node.entries.size())));
        break;
      case 4:
        if (!node.entries.empty()) pick(node.entries).key = pick(hostile_words());
        break;
      case 5:
        node.items.push_back(std::move(other));
        break;
      case 6:
        node.entries.push_back({pick(hostile_words()), {}, std::move(other)});
        break;
      default:
        if (!node.text.empty()) node.text[below(node.text.size())] = static_cast<char>(' ' + below(95));
    }
    if (&node == &root && root.kind != NodeKind::Map) root = nested(1, NodeKind::Map);
  }

  void mutate_bytes(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0:
        text.insert(at, pick(hostile_words()));
        break;
      case 1:
        text.erase(at, below(20));
        break;
      case 2:
        text.insert(at, text.substr(below(text.size() + 1), below(100)));
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      default:
        text.resize(at);
    }
  }

  std::mt19937_64 random_;
};

bool is_yaml(const std::string& text) {
  try {
    read_yaml(text, "f");
  } catch (const ConfigError&) {
    return false;
  }
  return true;
}

// "name:line:column: key: problem; allowed: ..." without bytes that a terminal obeys.
void expect_well_formed_line(const std::string& message, const std::string& text) {
  EXPECT_NE(message.find("; allowed: "), std::string::npos) << message;
  EXPECT_LT(message.size(), 4000u) << message;
  for (const char c : message) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << message;
  const std::size_t first = message.find(".yaml:");
  const bool has_line = first != std::string::npos && std::isdigit(static_cast<unsigned char>(message[first + 6])) != 0;
  EXPECT_TRUE(has_line || message.starts_with("default")) << message << "\nof\n" << text;
}

// Each error is a line of its own, and none is told twice.
void expect_well_formed(const std::string& message, const std::string& text) {
  const std::vector<std::string> lines = ConfigError(message).findings();
  for (const std::string& line : lines) expect_well_formed_line(line, text);
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), lines.size()) << message;
}

class FuzzScenario : public ::testing::TestWithParam<int> {};

TEST_P(FuzzScenario, ReadsOrRefusesEverything) {
  Fuzzer fuzzer(fuzz_seed(GetParam()));
  FuzzAccount account("scenarios and profiles");
  for (int i = 0; i < fuzz_inputs(kPercent) / kParts; ++i) {
    const std::string text = fuzzer.next();
    std::string message;
    account.count(is_yaml(text), [&] {
      const bool is_profile = text.find("\ntiers:") != std::string::npos;
      message = is_profile ? profile_error(text) : scenario_error(text);
      return message.empty();
    });
    if (!message.empty()) expect_well_formed(message, text);
  }
  account.close(0.5);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FuzzScenario, ::testing::Range(0, kParts));

// What is accepted, mutated or not, must read back from its own text.
TEST(FuzzedScenario, AcceptedScenariosAreFixedPoints) {
  Fuzzer fuzzer(7);
  int checked = 0;
  for (int i = 0; i < kMostTried && checked < 100; ++i) {
    const std::string text = fuzzer.next();
    if (text.find("\ntiers:") != std::string::npos || !scenario_error(text).empty()) continue;
    ++checked;
    const Scenario scenario = read_scenario(text, "f", {}, kHostileFolder, fixed_names());
    EXPECT_EQ(read_scenario(scenario.text, "g", {}, "/", fixed_names()).text, scenario.text);
  }
  EXPECT_GT(checked, 10);
}

}  // namespace
}  // namespace tandem::test
