#include "core/model/imported/text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/model/imported/program.hpp"

namespace tandem {
namespace {

constexpr std::size_t kLongestName = 200;

const std::string& scalar(const Node& node, const std::string& path, const char* allowed) {
  if (node.kind != NodeKind::Scalar) refuse(node.at, path, "is " + describe(node), allowed);
  return node.text;
}

// A whole word as an integer; false: it is none.
bool read_integer(std::string_view word, std::int64_t& out) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

// "16", "16b", "4bss": a number of so many, times samples (b) and lengths (s) as often as they stand there.
bool read_product(std::string_view word, const ImportedSizes& sizes, std::int64_t& out) {
  const std::string_view times = word.substr(0, word.find_first_of("bs"));
  std::string_view factors = word.substr(times.size());
  out = 1;
  if (factors.empty() || !times.empty()) {
    if (!read_integer(times, out)) return false;
  }
  for (const char factor : factors) {
    if (factor != 'b' && factor != 's') return false;
    if (__builtin_mul_overflow(out, factor == 'b' ? sizes.batch : sizes.sequence, &out)) return false;
  }
  return true;
}

// "16b+1": a sum of those, of few terms.
bool read_size(std::string_view word, const ImportedSizes& sizes, std::int64_t& out) {
  constexpr int kMostTerms = 8;
  out = 0;
  for (int term = 0; term < kMostTerms; ++term) {
    const bool negative = word.starts_with('-');
    if (negative || (term > 0 && word.starts_with('+'))) word.remove_prefix(1);
    const std::size_t end = std::min(word.find_first_of("+-"), word.size());
    std::int64_t part = 0;
    if (word.starts_with('+') || !read_product(word.substr(0, end), sizes, part)) return false;
    if (negative ? __builtin_sub_overflow(out, part, &out) : __builtin_add_overflow(out, part, &out)) return false;
    word.remove_prefix(end);
    if (word.empty()) return true;
  }
  return false;
}

}  // namespace

ImportedMap::ImportedMap(const Node& node, std::string path, std::initializer_list<std::string_view> keys)
    : node_(node), path_(std::move(path)) {
  if (node.kind != NodeKind::Map) refuse(node.at, path_.empty() ? "the file" : path_, "is " + describe(node), "a map");
  for (const Entry& entry : node.entries)
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end())
      refuse(entry.at, path_of(printable(entry.key)), "is unknown",
             join(std::vector<std::string>(keys.begin(), keys.end())));
}

std::string ImportedMap::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

const Node& ImportedMap::at(std::string_view key) const {
  const Node* found = node_.find(key);
  if (found == nullptr) refuse(node_.at, path_of(key), "is missing", "a value");
  return *found;
}

std::int64_t ImportedText::integer(const Node& node, const std::string& path) const {
  std::int64_t out = 0;
  if (!read_size(scalar(node, path, "a whole number"), sizes_, out))
    refuse(node.at, path, "is " + describe(node), "a whole number, or one by batch and sequence such as 16b+1 or 4bs");
  return out;
}

std::int64_t ImportedText::integer(const Node& node, const std::string& path, std::int64_t low,
                                   std::int64_t high) const {
  const std::int64_t out = integer(node, path);
  if (out < low || out > high)
    refuse(node.at, path, "is " + std::to_string(out), std::to_string(low) + " to " + std::to_string(high));
  return out;
}

PlainNumber ImportedText::number(const Node& node, const std::string& path) const {
  const std::string& word = scalar(node, path, "a number");
  if (word == "true" || word == "false") return word == "true";
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (std::int64_t out = 0; read_size(word, sizes_, out)) return out;
  double out = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  if (error != std::errc() || end != word.data() + word.size())
    refuse(node.at, path, "is " + describe(node), "a number");
  return out;
}

void for_each_item(const Node& node, const std::string& path, std::size_t most,
                   const std::function<void(const Node&, const std::string&)>& what) {
  if (node.kind != NodeKind::Sequence) refuse(node.at, path, "is " + describe(node), "a list");
  if (node.items.size() > most)
    refuse(node.at, path, "has " + std::to_string(node.items.size()) + " items", std::to_string(most) + " at most");
  for (std::size_t i = 0; i < node.items.size(); ++i) what(node.items[i], path + "." + std::to_string(i));
}

std::vector<std::int64_t> ImportedText::integers(const Node& node, const std::string& path) const {
  std::vector<std::int64_t> out;
  for_each_item(node, path, 1024, [&](const Node& item, const std::string& at) { out.push_back(integer(item, at)); });
  return out;
}

TensorType ImportedText::tensor(const ImportedMap& map) const {
  TensorType out;
  out.element = map.find("type") != nullptr ? element_of(map.at("type"), map.path_of("type")) : Element::F32;
  std::int64_t numbers = 1;
  for_each_item(map.at("shape"), map.path_of("shape"), kMostDimensions, [&](const Node& item, const std::string& at) {
    out.dims.push_back(integer(item, at, 0, kMostNumbers));
    if (__builtin_mul_overflow(numbers, out.dims.back(), &numbers) || numbers > kMostNumbers)
      refuse(item.at, at, "makes more numbers than a tensor has", std::to_string(kMostNumbers) + " in all");
  });
  return out;
}

Sizes ImportedText::order(const ImportedMap& map, std::string_view key, std::size_t rank) const {
  const Node* node = map.find(key);
  if (node == nullptr) return {};
  const std::vector<std::int64_t> order = ImportedText(sizes_).integers(*node, map.path_of(key));
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<std::int64_t>(i)) sorted.clear();
  if (sorted.size() != rank || order.size() != rank)
    refuse(node->at, map.path_of(key), "is no order of the dimensions",
           "each of 0 to " + std::to_string(rank) + " once, the last left out");
  return {order.begin(), order.end()};
}

bool flag_of(const Node& node, const std::string& path) {
  const std::string& word = scalar(node, path, "true or false");
  if (word != "true" && word != "false") refuse(node.at, path, "is " + describe(node), "true or false");
  return word == "true";
}

Element element_of(const Node& node, const std::string& path) {
  std::vector<std::string> names;
  for (int i = 0; i < kElementCount; ++i) {
    const auto element = static_cast<Element>(i);
    if (node.kind == NodeKind::Scalar && node.text == name_of(element)) return element;
    names.emplace_back(name_of(element));
  }
  refuse(node.at, path, "is " + describe(node), join(names));
}

const std::string& name_of(const Node& node, const std::string& path, bool dots) {
  const char* allowed = dots ? "a name of letters, digits, '_', '-' and '.'" : "a name of letters, digits, '_' and '-'";
  const std::string& name = scalar(node, path, allowed);
  const auto is_fine = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           (dots && c == '.');
  };
  if (name.empty() || name.size() > kLongestName || !std::all_of(name.begin(), name.end(), is_fine) || name[0] == '.' ||
      name[0] == '-' || name.find("..") != std::string::npos)
    refuse(node.at, path, "is " + describe(node), allowed);
  return name;
}

void check_format(const ImportedMap& root) {
  const Node& format = root.at("format");
  if (format.kind != NodeKind::Scalar || format.text != std::to_string(kFormat))
    refuse(format.at, "format", "is " + describe(format),
           std::to_string(kFormat) + "; import the module again with this Tandem");
}

}  // namespace tandem
