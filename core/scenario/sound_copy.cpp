#include "core/scenario/sound_copy.hpp"

#include <sstream>

#include "core/scenario/build.hpp"
#include "core/yaml/checker.hpp"
#include "core/yaml/schema.hpp"

namespace tandem {
namespace {

// Large, so that no option is out of a range that follows from sizes, and with all that a policy may ask for.
constexpr const char* kStandInWorkload =
    "{family: gpt, layers: 96, hidden: 16384, heads: 128, vocabulary: 50257, sequence: 2048, batch: 1}";
constexpr const char* kStandInMachine =
    "{name: stand_in, tiers: {device: {capacity: 1TB, bandwidth: 1TB/s}, host_pinned: {capacity: 10TB, bandwidth: "
    "100GB/s}, disk: {capacity: 100TB}}, compute: {peak: {fp32: 10TFLOPS, fp16: 10TFLOPS, bf16: 10TFLOPS}}, copies: "
    "{h2d: {bandwidth: 10GB/s}, d2h: {bandwidth: 10GB/s}, disk_read: {bandwidth: 1GB/s}, disk_write: {bandwidth: "
    "1GB/s}}, cpu: {cores: 64, peak: 1TFLOPS, optimizer: {rate: 1Gparameters/s}}, loader: {bandwidth: 1GB/s}}";

}  // namespace

std::vector<std::string> keys_of(const std::string& path) {
  std::vector<std::string> keys;
  std::istringstream in(path);
  for (std::string key; std::getline(in, key, '.');) keys.push_back(key);
  return keys;
}

std::string section_of(const std::string& path) { return path.substr(0, path.find('.')); }

void take_out(Node& root, const std::string& path) {
  Node* node = &root;
  const std::vector<std::string> keys = keys_of(path);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Node* inner = node->find(keys[i]);
    if (inner == nullptr) return;
    if (i + 1 == keys.size() || inner->kind != NodeKind::Map)
      return void(std::erase_if(node->entries, [&](const Entry& entry) { return entry.key == keys[i]; }));
    node = inner;
  }
}

std::optional<SoundCopy> sound_copy(Node root, const std::set<std::string>& faulty, const KnownNames& names) {
  for (const std::string& path : faulty) take_out(root, path);
  SoundCopy out;
  // A section that is replaced may have been what kept an error in another one from showing.
  constexpr int kMostAttempts = 3;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    Node tree = root;
    Findings findings;
    out.values = Values();
    Checker(names, out.values, findings).check(tree, *names.scenario, "");
    out.scenario = build_scenario(out.values);
    check_scenario_rules(out.values, out.scenario, findings);
    if (findings.empty()) {
      apply_limits(out.scenario);
      return out;
    }
    for (const std::string& path : findings.paths()) {
      const std::string section = section_of(path);
      out.replaced.insert(section);
      std::erase_if(root.entries, [&](const Entry& entry) { return entry.key == section; });
      if (section == kMachineSection)
        root.at_key(section, root.at) = read_yaml_value(kStandInMachine, "stand-in", section);
      if (section == kWorkloadSection)
        root.at_key(section, root.at) = read_yaml_value(kStandInWorkload, "stand-in", section);
      // What is read, and how, is of the network and of the machine's rates.
      if (section == kMachineSection || section == kWorkloadSection)
        std::erase_if(root.entries, [](const Entry& entry) { return entry.key == "data"; });
    }
  }
  return std::nullopt;
}

}  // namespace tandem
