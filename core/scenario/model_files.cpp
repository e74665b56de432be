#include "core/scenario/model_files.hpp"

#include <algorithm>
#include <filesystem>

#include "core/scenario/dirs.hpp"
#include "core/yaml/checker.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

Node read_file(const std::string& path, Findings& findings) {
  Node tree = read_yaml(read_text_file(path), path, &findings);
  visit_positions(tree, [](Position& at) { at.distance = 1; });
  return tree;
}

void erase(Node& map, const std::string& key) {
  std::erase_if(map.entries, [&](const Entry& entry) { return entry.key == key; });
}

Node scalar(const std::string& text, const Position& at) {
  Node node;
  node.kind = NodeKind::Scalar;
  node.text = text;
  node.at = at;
  return node;
}

// What the scenario gives itself stays; but a model's family is its own.
void give(Node& workload, const std::string& key, const Node& value, const std::string& what) {
  const Node* given = workload.find(key);
  if (given != nullptr && key == "family" && given->text != value.text)
    refuse(given->at, "workload.family", "is " + shown(given->text) + ", and " + what + " is a " + value.text,
           value.text + ", or no family");
  if (given == nullptr) workload.at_key(key, value.at) = value;
}

std::string file_of_model(const std::string& name, const std::string& directory, const KnownNames& names) {
  if (name.find('/') != std::string::npos || name.ends_with(".yaml")) {
    const fs::path path = fs::path(directory) / name;
    return is_file(path) ? path.string() : "";
  }
  for (const std::string& folder : names.model_dirs)
    if (const fs::path path = fs::path(folder) / (name + ".yaml"); is_file(path)) return path.string();
  return "";
}

void take_model(Node& workload, const Node& name, const std::string& directory, const KnownNames& names,
                Findings& findings) {
  if (name.kind != NodeKind::Scalar) refuse(name.at, "workload.model", "is " + describe(name), "a model's name");
  const std::string path = file_of_model(name.text, directory, names);
  if (path.empty()) {
    std::vector<std::string> known;
    for (const std::string& folder : names.model_dirs)
      for (const std::string& stem : yaml_stems(folder)) known.push_back(stem);
    refuse(name.at, "workload.model", "there is no model " + shown(name.text) + hint(name.text, known),
           join(known) + (known.empty() ? "" : ", ") + "or the path of a file");
  }
  const Node tree = read_file(path, findings);
  const Node* keys = tree.find("workload");
  if (keys == nullptr || keys->kind != NodeKind::Map)
    refuse(tree.at, "workload", "is missing; a model is the keys of a workload", "a map with family");
  for (const Entry& entry : keys->entries) give(workload, entry.key, entry.value, "model " + name.text);
}

// A field by its path: "text_config.hidden_size".
const Node* field_at(const Node& config, const std::string& path) {
  const Node* node = &config;
  for (std::size_t start = 0; node != nullptr && start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    node = node->find(path.substr(start, dot - start));
    start = dot + 1;
  }
  return node;
}

// How fields of one model type become keys (models/configs).
class Mapping {
 public:
  Mapping(const Node& config, const std::string& type, const KnownNames& names, Findings& findings) : config_(config) {
    for (const std::string& folder : names.model_dirs) {
      const std::string configs = (fs::path(folder) / "configs").string();
      if (is_file(configs + "/" + type + ".yaml")) rules_ = read_file(configs + "/" + type + ".yaml", findings);
      if (is_file(configs + "/common/ignored.yaml")) common_ = read_file(configs + "/common/ignored.yaml", findings);
      for (const std::string& stem : yaml_stems(configs)) types_.push_back(stem);
    }
  }
  bool is_known() const { return rules_.kind == NodeKind::Map; }
  const std::vector<std::string>& types() const { return types_; }

  void give_keys(Node& workload, const std::string& what, Findings& findings) {
    give(workload, "family", *rules_.find("family"), what);
    if (const Node* fixed = rules_.find("fixed"))
      for (const Entry& entry : fixed->entries) give(workload, entry.key, entry.value, what);
    for (const Entry& entry : rules_.find("keys")->entries) findings.collect([&] { take(workload, entry, what); });
    if (const Node* must = rules_.find("must"))
      for (const Entry& entry : must->entries) findings.collect([&] { require(entry); });
    refuse_unread(config_, "", findings);
  }

 private:
  static bool is_absent(const Node* field) { return field == nullptr || field->kind == NodeKind::Null; }
  // A key is a field's value (or that of another field, as later versions call it; or none, unless a flag is set), or
  // the word that stands for it; "default" where the field is not there.
  void take(Node& workload, const Entry& entry, const std::string& what) {
    const bool is_plain = entry.value.kind == NodeKind::Scalar;
    const std::string path = is_plain ? entry.value.text : entry.value.find("field")->text;
    read_.push_back(path);
    const Node* field = field_at(config_, path);
    const Node* other = is_plain ? nullptr : entry.value.find("or");
    if (other != nullptr) read_.push_back(other->text);
    if (other != nullptr && is_absent(field)) field = field_at(config_, other->text);
    if (const Node* condition = is_plain ? nullptr : entry.value.find("only_if")) {
      const Node* holds = field_at(config_, condition->text);
      if (is_absent(holds) || holds->text != "true") field = nullptr;
    }
    if (is_absent(field)) {
      const Node* otherwise = is_plain ? nullptr : entry.value.find("default");
      if (otherwise != nullptr) give(workload, entry.key, *otherwise, what);
      return;
    }
    const Node* words = is_plain ? nullptr : entry.value.find("words");
    if (words == nullptr) return give(workload, entry.key, *field, what);
    const Node* word = words->find(field->text);
    if (word == nullptr) refuse(field->at, path, describe(*field) + " cannot be honoured", allowed_of(*words));
    give(workload, entry.key, scalar(word->text, field->at), what);
  }
  static std::string allowed_of(const Node& words) {
    std::vector<std::string> allowed;
    for (const Entry& entry : words.entries) allowed.push_back(entry.key);
    return join(allowed);
  }
  void require(const Entry& entry) {
    read_.push_back(entry.key);
    const Node* field = field_at(config_, entry.key);
    if (field == nullptr || field->kind == NodeKind::Null) return;
    std::vector<std::string> allowed;
    for (const Node& item : entry.value.items) {
      allowed.push_back(item.text);
      if (field->kind == NodeKind::Scalar && field->text == item.text) return;
    }
    refuse(field->at, entry.key, "is " + describe(*field) + ", which cannot be honoured",
           allowed.empty() ? "null, or no such field" : join(allowed));
  }
  bool is_ignored(const std::string& name) const {
    for (const Node* rules : {&rules_, &common_})
      if (const Node* list = rules->find("ignored"))
        for (const Node& item : list->items)
          if (item.text == name) return true;
    return false;
  }
  // Fields that nothing reads could change the network.
  void refuse_unread(const Node& map, const std::string& prefix, Findings& findings) const {
    for (const Entry& entry : map.entries) {
      const std::string path = prefix + entry.key;
      const bool is_read = std::find(read_.begin(), read_.end(), path) != read_.end();
      const bool has_inner = std::any_of(read_.begin(), read_.end(),
                                         [&](const std::string& read) { return read.starts_with(path + "."); });
      if (is_read || entry.value.kind == NodeKind::Null || is_ignored(entry.key)) continue;
      if (has_inner && entry.value.kind == NodeKind::Map) {
        refuse_unread(entry.value, path + ".", findings);
        continue;
      }
      findings.add(Finding(entry.at, path, "is a field that Tandem does not know" + hint(entry.key, read_),
                           "take it out if it does not change the network"));
    }
  }

  const Node& config_;
  Node rules_, common_;
  std::vector<std::string> types_, read_ = {"model_type"};
};

void take_config(Node& workload, const Node& reference, const std::string& directory, const KnownNames& names,
                 Findings& findings) {
  if (reference.kind != NodeKind::Scalar)
    refuse(reference.at, "workload.config", "is " + describe(reference), "the path of a config.json");
  const fs::path path = fs::path(directory) / reference.text;
  if (!is_file(path))
    refuse(reference.at, "workload.config", "there is no file " + shown(path.string()), "a config.json");
  const Node config = read_file(path.string(), findings);
  const Node* type = config.find("model_type");
  Mapping mapping(config, type != nullptr ? type->text : "", names, findings);
  if (!mapping.is_known())
    refuse(type != nullptr ? type->at : config.at, "model_type",
           type == nullptr ? "is missing" : shown(type->text) + " is not known" + hint(type->text, mapping.types()),
           join(mapping.types()));
  mapping.give_keys(workload, reference.text, findings);
}

}  // namespace

void resolve_model(Node& workload, const std::string& directory, const KnownNames& names, Findings& findings) {
  if (workload.kind != NodeKind::Map) return;
  if (Node* path = workload.find("path"); path != nullptr && path->kind == NodeKind::Scalar) {
    const fs::path beside = fs::path(directory) / path->text;
    std::error_code error;
    if (fs::exists(beside, error)) path->text = fs::absolute(beside, error).lexically_normal().string();
  }
  for (const auto& [key, take] : {std::pair("model", &take_model), std::pair("config", &take_config)}) {
    const Node* found = workload.find(key);
    if (found == nullptr) continue;
    const Node reference = *found;
    erase(workload, key);
    findings.collect([&] { take(workload, reference, directory, names, findings); });
    // Without it nothing is known of the rest.
    if (workload.find("family") == nullptr) findings.spoil("workload");
  }
}

}  // namespace tandem
