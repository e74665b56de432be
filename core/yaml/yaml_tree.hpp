// YAML text to a plain tree with positions, read strictly: what YAML offers beyond maps, lists and scalars is refused.
// Must not know schemas, and keeps yaml-cpp out of sight.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/yaml/position.hpp"

namespace tandem {

class Findings;

enum class NodeKind { Null, Scalar, Sequence, Map };

struct Entry;

struct Node {
  NodeKind kind = NodeKind::Null;
  Position at;
  std::string text;            // Scalar
  bool is_quoted = false;      // Scalar: written in quotes or as a block, thus never a number or a flag
  std::vector<Node> items;     // Sequence
  std::vector<Entry> entries;  // Map, in the order written, keys unique

  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  // The value of `key`, appended as Null with the position `origin` if the map has none.
  Node& at_key(const std::string& key, const Position& origin);
};

struct Entry {
  std::string key;
  Position at;
  Node value;
};

// Limits that no honest file reaches; they bound the work that a hostile one can cause.
inline constexpr std::size_t kMostFileBytes = 4u << 20;
inline constexpr int kMostNodes = 100000;
inline constexpr std::size_t kMostDepth = 64;

// One YAML document whose root is a map. `name` stands for the file in messages. Throws Finding, but for keys given
// twice where there are `findings` to add them to.
Node read_yaml(const std::string& text, const std::string& name, Findings* findings = nullptr);
// One YAML value of any kind whose nodes all have the position `source` without lines (--set).
Node read_yaml_value(const std::string& text, const std::string& source, const std::string& key);
// Reads a file of at most kMostFileBytes; throws ConfigError, with a suggestion where a file beside it, or one of these
// names, is written much like it.
std::string read_text_file(const std::string& path, const std::vector<std::string>& names = {});

// Calls `visit` with the position of every node and key.
void visit_positions(Node& root, const std::function<void(Position&)>& visit);

// Block-style YAML that reads back to the same tree; the same text for the same tree.
std::string to_yaml(const Node& root);

// One value on one line, which reads back to the same.
std::string to_flow(const Node& node);

// The text of the map at `key` of the tree that `text` was read to, with all before it blank: read alone, its positions
// are those of the whole file. For a tree whose keys stand on lines of their own.
std::string text_of_part(const std::string& text, const Node& root, std::string_view key);

// "a map", "a list", "empty", "'word'": what a node is, for messages.
std::string describe(const Node& node);

}  // namespace tandem
