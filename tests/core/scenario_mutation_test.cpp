// Slips of one letter: every key and every word of a fixed choice in the example scenarios and the shipped profiles,
// with a letter changed, lost, doubled or swapped, is refused, and nearly always the right word is suggested.
#include <algorithm>
#include <cctype>
#include <iostream>
#include <set>

#include "core/yaml/checker.hpp"
#include "core/yaml/schema.hpp"
#include "core/yaml/yaml_tree.hpp"
#include "tests/core/scenario_cases.hpp"

namespace tandem::test {
namespace {

constexpr double kLeastRightSuggestions = 0.95;

std::set<std::string> mutations(const std::string& word) {
  std::set<std::string> out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::string before = word.substr(0, i), after = word.substr(i + 1);
    for (const char letter : {'e', 'x'}) {
      out.insert(before + letter + after);
      out.insert(before + letter + word.substr(i));
    }
    if (word.size() > 2) out.insert(before + after);
    out.insert(before + word[i] + word[i] + after);
    if (i + 1 < word.size()) out.insert(before + word[i + 1] + word[i] + word.substr(i + 2));
  }
  out.erase(word);
  out.erase("");
  return out;
}

struct Tally {
  int mutants = 0, refused = 0, suggested = 0;
};

bool is_choice(const Schema& schema) { return !schema.words.empty() || !schema.registry.empty(); }

// Tries the mutants of every key and choice below `node`, which is a part of `root`.
class Mutator {
 public:
  Mutator(Node& root, bool is_profile, Tally& tally) : root_(&root), is_profile_(is_profile), tally_(&tally) {}

  void visit(Node& node, const Schema& schema) {
    if (!schema.one_of.empty()) {
      const bool is_number = !node.text.empty() && std::isdigit(static_cast<unsigned char>(node.text[0])) != 0;
      for (const Schema& branch : schema.one_of)
        if ((branch.type == ValueType::Map) == (node.kind == NodeKind::Map) && !is_number) visit(node, branch);
      return;
    }
    for (std::size_t i = 0; i < node.entries.size(); ++i) {
      const std::vector<std::string> siblings = siblings_of(node, schema);
      const Property* property = schema.find(node.entries[i].key, case_of(node, schema));
      if (property != nullptr) visit(node.entries[i].value, property->schema);
      replace(node.entries[i].key, siblings);
    }
    for (std::size_t i = 0; i < node.items.size(); ++i)
      visit(node.items[i], schema.items[std::min(i, schema.items.size() - 1)]);
    if (node.kind == NodeKind::Scalar && is_choice(schema))
      replace(node.text, schema.registry.empty() ? schema.words : fixed_names().of(schema.registry));
  }

 private:
  std::vector<std::string> siblings_of(const Node& node, const Schema& schema) const {
    std::vector<std::string> out = schema.keys();
    const Node* name = node.find("name");
    const KnownNames names = fixed_names();
    if (!schema.options_of.empty() && name != nullptr)
      if (const auto* options = names.policy_options(name->text))
        out.insert(out.end(), options->begin(), options->end());
    return out;
  }

  void replace(std::string& word, const std::vector<std::string>& allowed) {
    const std::string original = word;
    for (const std::string& mutant : mutations(original)) {
      if (std::find(allowed.begin(), allowed.end(), mutant) != allowed.end()) continue;  // another valid word
      word = mutant;
      const std::string text = to_yaml(*root_);
      const std::string message = is_profile_ ? profile_error(text) : scenario_error(text, {}, /*makes=*/false);
      ++tally_->mutants;
      tally_->refused += !message.empty();
      tally_->suggested += message.find("did you mean '" + original + "'") != std::string::npos;
      EXPECT_NE(message, "") << original << " as " << mutant << " was accepted";
    }
    word = original;
  }

  Node* root_;
  bool is_profile_;
  Tally* tally_;
};

void report(const Tally& tally) {
  std::cout << tally.mutants << " mutants, " << tally.refused << " refused, " << tally.suggested
            << " with the right suggestion\n";
  EXPECT_GT(tally.mutants, 500);
  EXPECT_EQ(tally.refused, tally.mutants);
  EXPECT_GE(tally.suggested, kLeastRightSuggestions * tally.mutants);
}

constexpr const char* kExamples[] = {
    "machine: m\nlimits: {device_bytes: 16GiB, host_bytes: 64GiB, cores: 8}\n"
    "workload: {family: gpt, layers: 24, hidden: 2048, heads: 16, vocabulary: 50257, sequence: 1024, batch: 8,\n"
    "  micro_batches: 1, precision: fp16, attention: fused, recompute: none, dropout: 0, tied_embedding: true,\n"
    "  devices: 1}\n"
    "optimizer: {name: adamw, learning_rate: 1e-3, betas: [0.9, 0.999], epsilon: 1e-8, weight_decay: 0, clip_norm: 0,\n"
    "  schedule: cosine, warmup_steps: 2, decay_steps: 100, final_learning_rate: 1e-4, decay: matrices}\n"
    "data: {text: corpus, images: /tmp}\nvalidation: {every: 10, batches: 8, fraction: 0.1}\n"
    "policy: {name: cotrain, separation: auto, prefetch: 4}\n"
    "truth: {copy_time: 1, compute_time: 1, optimizer_time: 1, noise: 0}\nsteps: 4\nseed: 0\n",
    "machine: m\nworkload: {family: gpt_decode, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: 16,\n"
    "  prompt: 4, new_tokens: 8, stop_token: 0}\npolicy: {name: on_demand, home: disk}\n",
    "machine: m\nworkload: {family: layers, layers: 48, layer_bytes: 200MiB, forward: 2.222ms, backward: 4.444ms,\n"
    "  optimizer: 26ms}\npolicy: {name: zero_offload, delayed_update: true}\n",
    "machine: m\nworkload: {family: mlp, layers: 2, hidden: 8, inputs: 4, classes: 2}\npolicy: {name: resident}\n"};

TEST(ScenarioMutation, Scenarios) {
  Tally tally;
  for (const char* example : kExamples) {
    ASSERT_EQ(scenario_error(example), "");
    Node root = read_yaml(example, "example");
    Mutator(root, false, tally).visit(root, *fixed_names().scenario);
  }
  report(tally);
}

TEST(ScenarioMutation, Profiles) {
  Tally tally;
  for (const char* name : {"round_numbers", "h200"}) {
    const std::string path = source_path("hardware_profiles/") + name + ".yaml";
    Node root = read_yaml(read_text_file(path), path);
    Mutator(root, true, tally).visit(root, profile_schema());
  }
  report(tally);
}

}  // namespace
}  // namespace tandem::test
