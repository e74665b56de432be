#include "core/yaml/yaml_tree.hpp"

#include <utility>

#include "core/base/check.hpp"
#include "core/base/input_file.hpp"

namespace tandem {

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

Node& Node::at_key(const std::string& key, const Position& origin) {
  if (Node* node = find(key)) return *node;
  entries.push_back(Entry{key, origin, Node()});
  entries.back().value.at = origin;
  return entries.back().value;
}

std::string read_text_file(const std::string& path) {
  const Position start{std::make_shared<const std::string>(path), 1, 1};
  try {
    return read_input_file(path, kMostFileBytes, Pipes::Read);
  } catch (const UnreadableFile& error) {
    refuse(start, "file", error.what(), "a readable YAML file");
  }
}

void visit_positions(Node& root, const std::function<void(Position&)>& visit) {
  visit(root.at);
  for (Node& item : root.items) visit_positions(item, visit);
  for (Entry& entry : root.entries) {
    visit(entry.at);
    visit_positions(entry.value, visit);
  }
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case NodeKind::Null:
      return "empty";
    case NodeKind::Scalar:
      return node.is_quoted ? "the text " + shown(node.text) : shown(node.text);
    case NodeKind::Sequence:
      return "a list";
    case NodeKind::Map:
      return "a map";
  }
  CHECK(false, static_cast<int>(node.kind));
  return "";
}

}  // namespace tandem
