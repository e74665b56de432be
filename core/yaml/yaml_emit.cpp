// Trees back to YAML text.
#include <algorithm>
#include <cctype>

#include "core/yaml/yaml_tree.hpp"

namespace tandem {
namespace {

constexpr int kIndent = 2;

bool is_plain_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' || c == '+' || c == '-' ||
         c == '%';
}

// Whether the word reads back as itself in any place, lists in brackets included.
bool is_safe_plain(const std::string& word) {
  if (word.empty() || word[0] == '%') return false;
  if (word[0] == '-' && (word.size() == 1 || word[1] == '-')) return false;
  if (word == "null" || word == "Null" || word == "NULL" || word == "..." || word == "+") return false;
  return std::all_of(word.begin(), word.end(), is_plain_character);
}

std::string in_quotes(const std::string& word) {
  std::string out = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string scalar(const Node& node) {
  return !node.is_quoted && is_safe_plain(node.text) ? node.text : in_quotes(node.text);
}

std::string key_text(const std::string& key) { return is_safe_plain(key) ? key : in_quotes(key); }

// Everything on one line.
void emit_flow(const Node& node, std::string& out) {
  const char* separator = "";
  switch (node.kind) {
    case NodeKind::Null:
      out += "null";
      break;
    case NodeKind::Scalar:
      out += scalar(node);
      break;
    case NodeKind::Sequence:
      out += '[';
      for (const Node& item : node.items) {
        out += separator;
        emit_flow(item, out);
        separator = ", ";
      }
      out += ']';
      break;
    case NodeKind::Map:
      out += '{';
      for (const Entry& entry : node.entries) {
        out += separator + key_text(entry.key) + ": ";
        emit_flow(entry.value, out);
        separator = ", ";
      }
      out += '}';
      break;
  }
}

bool holds_map(const Node& node) {
  return std::any_of(node.entries.begin(), node.entries.end(),
                     [](const Entry& entry) { return entry.value.kind == NodeKind::Map; });
}

// A map of maps spreads over lines; what it holds at the end stands on one.
void emit_block(const Node& map, int indent, std::string& out) {
  for (const Entry& entry : map.entries) {
    out.append(static_cast<std::size_t>(indent), ' ');
    out += key_text(entry.key) + ":";
    if (entry.value.kind == NodeKind::Map && holds_map(entry.value)) {
      out += '\n';
      emit_block(entry.value, indent + kIndent, out);
    } else {
      out += ' ';
      emit_flow(entry.value, out);
      out += '\n';
    }
  }
}

}  // namespace

std::string to_flow(const Node& node) {
  std::string out;
  emit_flow(node, out);
  return out;
}

std::string to_yaml(const Node& root) {
  std::string out;
  emit_block(root, 0, out);
  return out;
}

}  // namespace tandem
