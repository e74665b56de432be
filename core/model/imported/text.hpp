// Values of an import's YAML, each checked where it is taken. Must not know what any of them means.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/imported/value.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {

// A map's keys, all of which must be among those that are named. All throw Finding.
class ImportedMap {
 public:
  ImportedMap(const Node& node, std::string path, std::initializer_list<std::string_view> keys);
  const Node* find(std::string_view key) const { return node_.find(key); }
  const Node& at(std::string_view key) const;
  std::string path_of(std::string_view key) const;
  const Node& node() const { return node_; }

 private:
  const Node& node_;
  std::string path_;
};

// Sizes may go by the samples of a batch and their length: "64", "b", "16b+1", "bs", "4bss-s".
class ImportedText {
 public:
  explicit ImportedText(const ImportedSizes& sizes) : sizes_(sizes) {}
  std::int64_t integer(const Node& node, const std::string& path) const;
  // From `low` to `high`.
  std::int64_t integer(const Node& node, const std::string& path, std::int64_t low, std::int64_t high) const;
  PlainNumber number(const Node& node, const std::string& path) const;
  std::vector<std::int64_t> integers(const Node& node, const std::string& path) const;
  TensorType tensor(const ImportedMap& map) const;
  // A permutation of so many dimensions; empty: none is said.
  Sizes order(const ImportedMap& map, std::string_view key, std::size_t rank) const;

 private:
  ImportedSizes sizes_;
};

bool flag_of(const Node& node, const std::string& path);
Element element_of(const Node& node, const std::string& path);
// Of letters, digits, '_' and '.', and no longer than a name is.
const std::string& name_of(const Node& node, const std::string& path, bool dots = true);
void for_each_item(const Node& node, const std::string& path, std::size_t most,
                   const std::function<void(const Node&, const std::string&)>& what);
void check_format(const ImportedMap& root);

}  // namespace tandem
