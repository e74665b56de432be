// Strict reading of integers, numbers, flags and quantities.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/yaml/checker.hpp"
#include "core/yaml/decimal.hpp"

namespace tandem {
namespace {

// The number at the start of a scalar; refuses what is no scalar or no number.
Decimal leading_number(const Node& node, const Schema& schema, const std::string& path, std::size_t& length) {
  if (node.kind != NodeKind::Scalar) refuse(node.at, path, "is " + describe(node), allowed_text(schema));
  NumberFault fault;
  const std::optional<Decimal> value = read_decimal(node.text, length, fault);
  if (!value) refuse(node.at, path, shown(node.text) + " " + fault.text, allowed_text(schema));
  return *value;
}

// A number that is all of an unquoted scalar.
Decimal whole_number(const Node& node, const Schema& schema, const std::string& path, const char* noun) {
  if (node.kind == NodeKind::Scalar && node.is_quoted)
    refuse(node.at, path, "is " + describe(node) + ", not " + noun, allowed_text(schema));
  std::size_t length = 0;
  const Decimal value = leading_number(node, schema, path, length);
  if (length != node.text.size()) refuse(node.at, path, shown(node.text) + " is not " + noun, allowed_text(schema));
  return value;
}

void check_range(double value, const Node& node, const Schema& schema, const std::string& path) {
  const auto& least = schema.least;
  const auto& most = schema.most;
  if (std::isnan(value)) refuse(node.at, path, shown(node.text) + " is not a number", allowed_text(schema));
  if (least && least->value >= 0 && value < 0)
    refuse(node.at, path, shown(node.text) + " is negative", allowed_text(schema));
  if (least && (value < least->value || (least->is_exclusive && value <= least->value)))
    refuse(node.at, path, shown(node.text) + (value == 0 ? " is zero" : " is too small"), allowed_text(schema));
  if (most && (value > most->value || (most->is_exclusive && value >= most->value)))
    refuse(node.at, path, shown(node.text) + " is too large", allowed_text(schema));
}

bool equal_but_for_case(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// A unit cut short (GB for GB/s) is further away than a slip.
std::string unit_hint(const std::string& unit, const std::vector<std::string>& names) {
  constexpr std::size_t kShort = 2;  // letters: one wrong letter of them is another unit, not a slip (ms for MB)
  std::vector<std::string> likely;
  for (const std::string& name : names)
    if (unit.size() > kShort || (name.size() == unit.size() && equal_but_for_case(name, unit))) likely.push_back(name);
  std::string near = hint(unit, likely);
  if (!near.empty()) return near;
  for (const std::string& name : names)
    if (name.starts_with(unit)) return hint(name, {name});
  return "";
}

std::int64_t unit_factor(const Node& node, const Schema& schema, const std::string& path, std::size_t length) {
  const UnitFamily& family = unit_family(schema.unit);
  const std::string unit = node.text.substr(length);
  for (const auto& [name, factor] : family.units)
    if (name == unit) return factor;
  if (unit.empty()) refuse(node.at, path, shown(node.text) + " has no unit", allowed_text(schema));
  if (unit[0] == ' ') refuse(node.at, path, shown(node.text) + " has a space before its unit", allowed_text(schema));
  refuse(node.at, path, shown(node.text) + " has the unknown unit " + shown(unit) + unit_hint(unit, family.names()),
         allowed_text(schema));
}

}  // namespace

std::int64_t checked_integer(const Node& node, const Schema& schema, const std::string& path) {
  const Decimal value = whole_number(node, schema, path, "an integer");
  if (!value.is_integer) refuse(node.at, path, shown(node.text) + " is not an integer", allowed_text(schema));
  check_range(value.approximate, node, schema, path);
  const std::optional<std::int64_t> exact = scaled(value, 1);
  if (!exact) refuse(node.at, path, shown(node.text) + " is too large", allowed_text(schema));
  const auto& words = schema.words;
  if (!words.empty() && std::find(words.begin(), words.end(), std::to_string(*exact)) == words.end())
    refuse(node.at, path, shown(node.text) + " is not one of them", allowed_text(schema));
  return *exact;
}

double checked_number(const Node& node, const Schema& schema, const std::string& path) {
  const Decimal value = whole_number(node, schema, path, "a number");
  check_range(value.approximate, node, schema, path);
  return value.approximate;
}

// Sizes and durations as integers, rates and counts as doubles: exact where the product is a whole number.
Values::Value checked_quantity(const Node& node, const Schema& schema, const std::string& path) {
  std::size_t length = 0;
  const Decimal value = leading_number(node, schema, path, length);
  const std::int64_t factor = unit_factor(node, schema, path, length);
  check_range(value.approximate * static_cast<double>(factor), node, schema, path);
  const std::optional<std::int64_t> exact = scaled(value, factor);
  if (!exact) refuse(node.at, path, shown(node.text) + " is too large", allowed_text(schema));
  // Nothing, where something is meant, is most likely a wrong unit.
  if (*exact == 0 && value.approximate != 0)
    refuse(node.at, path, shown(node.text) + " would round to 0", allowed_text(schema));
  return *exact;
}

bool checked_flag(const Node& node, const Schema& schema, const std::string& path) {
  const bool is_flag =
      node.kind == NodeKind::Scalar && !node.is_quoted && (node.text == "true" || node.text == "false");
  if (!is_flag) {
    const bool is_word = node.kind == NodeKind::Scalar && !node.is_quoted;
    const std::string problem = is_word ? " is not a flag" + hint(node.text, {"true", "false"}) : "";
    refuse(node.at, path, (is_word ? "" : "is ") + describe(node) + problem, allowed_text(schema));
  }
  return node.text == "true";
}

}  // namespace tandem
