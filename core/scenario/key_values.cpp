#include "core/scenario/key_values.hpp"

#include <array>
#include <charconv>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// The shortest text that reads back as the same number.
std::string text_of(double number) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

}  // namespace

template <typename T>
const T& KeyValues::get(std::string_view key) const {
  const auto found = values_.find(key);
  CHECK(found != values_.end(), key, "is not among the scenario's keys");
  const T* value = std::get_if<T>(&found->second);
  CHECK(value != nullptr, key, "is of another kind:", found->second.index());
  return *value;
}

std::int64_t KeyValues::integer(std::string_view key) const { return get<std::int64_t>(key); }
bool KeyValues::flag(std::string_view key) const { return get<bool>(key); }
const std::string& KeyValues::text(std::string_view key) const { return get<std::string>(key); }
const std::vector<std::int64_t>& KeyValues::integers(std::string_view key) const {
  return get<std::vector<std::int64_t>>(key);
}

double KeyValues::number(std::string_view key) const {
  const auto found = values_.find(key);
  if (found != values_.end())
    if (const auto* whole = std::get_if<std::int64_t>(&found->second)) return static_cast<double>(*whole);
  return get<double>(key);
}

std::int64_t KeyValues::integer_or(std::string_view key, std::int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}

std::string KeyValues::text_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : std::string(fallback);
}

std::string KeyValues::words(const KeyValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&value)) return text_of(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::string list;
  for (const std::int64_t item : std::get<std::vector<std::int64_t>>(value))
    list += (list.empty() ? "" : ", ") + std::to_string(item);
  return "[" + list + "]";
}

}  // namespace tandem
