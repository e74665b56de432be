#include "core/scenario/machine_files.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/check.hpp"
#include "core/scenario/dirs.hpp"
#include "core/scenario/replaced_figures.hpp"
#include "core/yaml/checker.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestChain = 16;  // of profiles that derive from one another
constexpr const char* kExtension = ".yaml";
constexpr const char* kDeriveFrom = "derive_from";

using Chain = std::vector<std::string>;  // canonical paths, the file that is being read last

// A path rather than a name: has a slash or the extension.
bool is_path(const std::string& word) { return word.find('/') != std::string::npos || word.ends_with(kExtension); }

// Regular files only: a pipe would block for ever.
bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string canonical(const std::string& path) {
  std::error_code error;
  const fs::path result = fs::weakly_canonical(path, error);
  return error ? path : result.string();
}

std::vector<std::string> folders(const std::string& directory, const KnownNames& names) {
  std::vector<std::string> out = names.profile_dirs;
  out.push_back(directory);
  return out;
}

// The file that `reference` means, or "".
std::string find_file(const std::string& reference, const std::string& directory, const KnownNames& names) {
  if (is_path(reference)) {
    for (const fs::path& path : {fs::path(directory) / reference, fs::path(reference)})
      if (is_file(path)) return path.string();
    return "";
  }
  for (const std::string& folder : folders(directory, names))
    if (const fs::path path = fs::path(folder) / (reference + kExtension); is_file(path)) return path.string();
  return "";
}

[[noreturn]] void refuse_reference(const Node& node, const std::string& key, const KnownNames& names) {
  std::vector<std::string> known;
  for (const std::string& folder : names.profile_dirs)
    for (const std::string& name : yaml_stems(folder))
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  refuse(node.at, key, "there is no profile " + shown(node.text) + hint(node.text, known),
         join(known) + (known.empty() ? "" : ", ") + "the path of a profile, or a profile as a map");
}

// A map of the profile's structure, as opposed to {value:, source:}.
bool is_structure(const Node& node) { return node.kind == NodeKind::Map && node.find("value") == nullptr; }

void merge(Node& base, Node&& changes) {
  for (Entry& entry : changes.entries) {
    Node& target = base.at_key(entry.key, entry.at);
    for (Entry& kept : base.entries)
      if (kept.key == entry.key) kept.at = entry.at;
    if (is_structure(target) && is_structure(entry.value)) {
      merge(target, std::move(entry.value));
    } else {
      target = std::move(entry.value);
    }
  }
  base.at = changes.at;
}

void erase(Node& map, const std::string& key) {
  std::erase_if(map.entries, [&](const Entry& entry) { return entry.key == key; });
}

// What reading a profile needs to know at every level of derivation.
struct Reading {
  const KnownNames* names;
  Findings* findings;
  std::string path;  // of the profile in the file that is read: "machine", or "" where it is the file
  Chain chain;
  std::size_t depth = 0;  // files between the one that is read and the one at the end of the chain
};

void resolve(Node& profile, const std::string& directory, const std::string& key, Reading& reading);

Node read_profile_tree(const Node& reference, const std::string& directory, const std::string& key, Reading& reading) {
  const std::string path = find_file(reference.text, directory, *reading.names);
  if (path.empty()) refuse_reference(reference, key, *reading.names);
  const std::string real = canonical(path);
  const bool is_cycle = std::find(reading.chain.begin(), reading.chain.end(), real) != reading.chain.end();
  if (is_cycle || reading.chain.size() >= kLongestChain)
    refuse(reference.at, key,
           is_cycle ? shown(reference.text) + " derives from itself" : "more than 16 profiles derive from one another",
           "a profile that derives from others only");
  Node tree = read_yaml(read_text_file(path), path, reading.findings);
  reading.chain.push_back(real);
  ++reading.depth;
  visit_positions(tree, [&](Position& at) { at.distance = static_cast<int>(reading.depth); });
  resolve(tree, fs::path(path).parent_path().string(), kDeriveFrom, reading);
  --reading.depth;
  CHECK(!reading.chain.empty() && reading.chain.back() == real, "a profile ends another's turn", real);
  reading.chain.pop_back();
  if (tree.find("name") == nullptr) {
    Node& name = tree.at_key("name", tree.at);
    name.kind = NodeKind::Scalar;
    name.text = fs::path(path).stem().string();
  }
  return tree;
}

// Without what it derives from, a profile keeps what it says itself, and nothing is said of what else it would have.
void resolve(Node& profile, const std::string& directory, const std::string& key, Reading& reading) {
  const Node* reference = profile.find(kDeriveFrom);
  if (reference == nullptr) return;
  try {
    if (reference->kind != NodeKind::Scalar)
      refuse(reference->at, key, "is " + describe(*reference), "a profile's name");
    Node base = read_profile_tree(*reference, directory, key, reading);
    // What the base says of itself is not true of what derives from it.
    for (const char* own : {"name", "description", "source", "fingerprint"}) erase(base, own);
    forget_measurements(base, paths_of(profile));
    erase(profile, kDeriveFrom);
    merge(base, std::move(profile));
    profile = std::move(base);
  } catch (const Finding& refusal) {
    reading.findings->add(refusal);
    reading.findings->leave_open(reading.path);
    erase(profile, kDeriveFrom);
  }
}

}  // namespace

void resolve_machine(Node& machine, const std::string& directory, const KnownNames& names, Findings& findings) {
  Reading reading{&names, &findings, "machine", {}};
  if (machine.kind == NodeKind::Scalar) {
    try {
      machine = read_profile_tree(machine, directory, "machine", reading);
    } catch (const Finding& refusal) {
      findings.add(refusal);
      findings.spoil("machine");
    }
  } else if (machine.kind == NodeKind::Map) {
    resolve(machine, directory, "machine.derive_from", reading);
  }
}

void resolve_profile(Node& profile, const std::string& path, const KnownNames& names, Findings& findings) {
  Reading reading{&names, &findings, "", {canonical(path)}};
  resolve(profile, fs::path(path).parent_path().string(), kDeriveFrom, reading);
}

}  // namespace tandem
