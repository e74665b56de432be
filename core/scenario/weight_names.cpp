#include "core/scenario/weight_names.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/scenario/dirs.hpp"
#include "core/yaml/position.hpp"

namespace tandem {
namespace {

constexpr char kNumber = '#';

[[noreturn]] void refuse_section(const Node& node, const std::string& key) {
  refuse(node.at, "weights." + key, "is " + describe(node), "see docs/weights.md");
}

const std::string& word(const Node& node, const std::string& key) {
  if (node.kind != NodeKind::Scalar || node.text.empty()) refuse_section(node, key);
  return node.text;
}

std::int64_t number(const Node& node, const std::string& key) {
  std::int64_t value = -1;
  const std::string& text = word(node, key);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) refuse_section(node, key);
  return value;
}

std::vector<std::string> words(const Node* list, const std::string& key) {
  std::vector<std::string> out;
  if (list == nullptr) return out;
  if (list->kind != NodeKind::Sequence) refuse_section(*list, key);
  for (const Node& item : list->items) out.push_back(word(item, key));
  return out;
}

std::vector<std::pair<std::string, std::string>> pairs(const Node* map, const std::string& key) {
  std::vector<std::pair<std::string, std::string>> out;
  if (map == nullptr) return out;
  if (map->kind != NodeKind::Map) refuse_section(*map, key);
  for (const auto& [from, at, to] : map->entries) out.emplace_back(from, word(to, key + "." + from));
  return out;
}

// "name", [name, name], or {name: ..., and how it lies}.
WeightSource source_of(const Node& node, const std::string& key) {
  WeightSource source;
  if (node.kind == NodeKind::Scalar) source.names = {word(node, key)};
  if (node.kind == NodeKind::Sequence) source.names = words(&node, key);
  if (node.kind == NodeKind::Map)
    for (const auto& [name, at, value] : node.entries) {
      if (name == "name")
        source.names = {word(value, key)};
      else if (name == "transposed")
        source.is_transposed = word(value, key) == "true";
      else if (name == "from_row")
        source.from_row = number(value, key), source.may_be_longer = true;
      else if (name == "groups")
        source.groups = word(value, key);
      else if (name == "place")
        source.place = number(value, key);
      else if (name == "plus_row")
        source.plus_row = word(value, key);
      else
        refuse_section(value, key + "." + name);
    }
  if (source.names.empty()) refuse_section(node, key);
  return source;
}

std::string with_number(std::string name, const std::string& digits) {
  if (const std::size_t at = name.find(kNumber); at != std::string::npos) name.replace(at, 1, digits);
  return name;
}

}  // namespace

std::optional<std::string> matched_number(std::string_view pattern, std::string_view text) {
  const std::size_t at = pattern.find(kNumber);
  if (at == std::string_view::npos) return pattern == text ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, at), behind = pattern.substr(at + 1);
  if (text.size() <= before.size() + behind.size() || !text.starts_with(before) || !text.ends_with(behind))
    return std::nullopt;
  const std::string_view digits = text.substr(at, text.size() - before.size() - behind.size());
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::string(digits);
}

WeightNames::WeightNames(std::string file, const Node& config) : file_(std::move(file)) {
  const Node* given = config.find("weights");
  if (given == nullptr || given->kind != NodeKind::Map) refuse_section(config, "");
  const Node& section = *given;
  fixed_ = pairs(config.find("fixed"), "fixed");
  skipped_ = words(section.find("skipped"), "skipped");
  prefixes_ = words(section.find("prefixes"), "prefixes");
  renamed_ = pairs(section.find("renamed"), "renamed");
  copies_ = pairs(section.find("copies"), "copies");
  const Node* tensors = section.find("tensors");
  if (tensors == nullptr || tensors->kind != NodeKind::Map) refuse_section(section, "tensors");
  for (const auto& [pattern, at, value] : tensors->entries)
    rules_.push_back({pattern, source_of(value, "tensors." + pattern)});
}

bool WeightNames::is_of(const KeyValues& keys) const {
  return std::all_of(fixed_.begin(), fixed_.end(), [&](const auto& fixed) {
    const auto found = keys.all().find(fixed.first);
    return found != keys.all().end() && KeyValues::words(found->second) == fixed.second;
  });
}

std::optional<WeightSource> WeightNames::of(std::string_view weight) const {
  for (const Rule& rule : rules_) {
    const std::optional<std::string> digits = matched_number(rule.pattern, weight);
    if (!digits) continue;
    WeightSource source = rule.source;
    for (std::string& name : source.names) name = with_number(std::move(name), *digits);
    source.plus_row = with_number(std::move(source.plus_row), *digits);
    return source;
  }
  return std::nullopt;
}

// Heads stand beside the model whose name is the prefix of all else.
std::optional<std::string> WeightNames::layer_of(const std::string& layer) const {
  constexpr std::string_view kWeight = ".weight";
  const std::optional<WeightSource> source = of(layer + std::string(kWeight));
  if (!source || source->names.size() != 1 || !source->names[0].ends_with(kWeight)) return std::nullopt;
  if (!source->groups.empty() || !source->plus_row.empty() || source->names[0].find('*') != std::string::npos)
    return std::nullopt;
  const std::string name = source->names[0].substr(0, source->names[0].size() - kWeight.size());
  return name.find('.') == std::string::npos || prefixes_.empty() ? name : prefixes_.front() + name;
}

bool WeightNames::is_skipped(std::string_view name) const {
  return std::any_of(skipped_.begin(), skipped_.end(),
                     [&](const std::string& pattern) { return matched_number(pattern, name).has_value(); });
}

std::string WeightNames::copy_of(std::string_view name) const {
  for (const auto& [copy, of] : copies_)
    if (copy == name) return of;
  return "";
}

std::string WeightNames::known_as(std::string_view name) const {
  for (const std::string& prefix : prefixes_)
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
      break;
    }
  std::string known(name);
  for (const auto& [from, to] : renamed_)
    if (known.ends_with(from)) return known.replace(known.size() - from.size(), from.size(), to);
  return known;
}

std::vector<WeightNames> weight_names_of(const std::string& family, const std::vector<std::string>& model_dirs) {
  std::vector<WeightNames> out;
  for (const std::string& folder : model_dirs) {
    const std::string configs = (std::filesystem::path(folder) / "configs").string();
    for (const std::string& stem : yaml_stems(configs)) {
      const std::string path = configs + "/" + stem + ".yaml";
      const Node tree = read_yaml(read_text_file(path), path);
      const Node *of = tree.find("family"), *section = tree.find("weights");
      if (of != nullptr && of->text == family && section != nullptr && section->kind == NodeKind::Map)
        out.emplace_back("models/configs/" + stem + ".yaml", tree);
    }
    if (!out.empty()) break;
  }
  return out;
}

}  // namespace tandem
