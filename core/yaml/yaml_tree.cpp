#include "core/yaml/yaml_tree.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/input_file.hpp"
#include "core/yaml/suggest.hpp"

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

namespace {

std::string hint_for_file(const std::string& path, std::vector<std::string> names) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(path, error)) return "";
  const fs::path folder = fs::path(path).parent_path();
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".yaml") names.push_back((folder / entry->path().filename()).string());
  std::sort(names.begin(), names.end());
  const std::string near = suggest(path, names);
  return near.empty() ? "" : ", did you mean " + shown(near) + "?";
}

// Of a line, from 1.
std::size_t start_of_line(const std::string& text, int line) {
  std::size_t at = 0;
  for (int i = 1; i < line && at != std::string::npos; ++i) {
    at = text.find('\n', at);
    if (at != std::string::npos) ++at;
  }
  return std::min(at, text.size());
}

}  // namespace

std::string text_of_part(const std::string& text, const Node& root, std::string_view key) {
  const Node* part = root.find(key);
  CHECK(part != nullptr, key);
  std::size_t end = text.size();
  for (const Entry& entry : root.entries)
    if (entry.at.line > part->at.line) end = std::min(end, start_of_line(text, entry.at.line));
  const auto indent = static_cast<std::size_t>(part->at.column - 1);
  const std::size_t begin = std::min(start_of_line(text, part->at.line) + indent, end);
  return std::string(static_cast<std::size_t>(part->at.line - 1), '\n') + std::string(indent, ' ') +
         text.substr(begin, end - begin);
}

std::string read_text_file(const std::string& path, const std::vector<std::string>& names) {
  const Position start{std::make_shared<const std::string>(path), 1, 1};
  try {
    return read_input_file(path, kMostFileBytes, Pipes::Read);
  } catch (const UnreadableFile& error) {
    refuse(start, "file", error.what() + hint_for_file(path, names), "a readable YAML file");
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
