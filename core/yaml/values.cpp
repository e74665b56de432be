#include "core/yaml/values.hpp"

#include "core/base/check.hpp"

namespace tandem {

bool Values::is_integer(const std::string& path) const {
  const auto found = values_.find(path);
  return found != values_.end() && std::holds_alternative<std::int64_t>(found->second.value);
}

std::map<std::string, std::string> Values::texts_below(const std::string& prefix) const {
  std::map<std::string, std::string> out;
  for (auto it = values_.lower_bound(prefix); it != values_.end() && it->first.starts_with(prefix); ++it)
    if (const auto* word = std::get_if<std::string>(&it->second.value)) out[it->first.substr(prefix.size())] = *word;
  return out;
}

std::map<std::string, Values::Value> Values::below(const std::string& prefix) const {
  std::map<std::string, Value> out;
  for (auto it = values_.lower_bound(prefix); it != values_.end() && it->first.starts_with(prefix); ++it)
    if (it->first.find('.', prefix.size()) == std::string::npos)
      out.emplace(it->first.substr(prefix.size()), it->second.value);
  return out;
}

std::map<std::string, std::vector<std::int64_t>> Values::lists_below(const std::string& prefix) const {
  std::map<std::string, std::vector<std::int64_t>> out;
  for (auto it = counts_.lower_bound(prefix); it != counts_.end() && it->first.starts_with(prefix); ++it) {
    std::vector<std::int64_t> items;
    bool all = true;
    for (std::size_t i = 0; i < it->second; ++i) {
      const std::string item = it->first + "." + std::to_string(i);
      if (is_integer(item)) items.push_back(integer(item));
      all = all && (is_integer(item) || !has(item));
    }
    if (all) out.emplace(it->first.substr(prefix.size()), std::move(items));
  }
  return out;
}

std::int64_t Values::integer(const std::string& path, std::int64_t fallback) const {
  const auto found = values_.find(path);
  if (found == values_.end()) return fallback;
  const auto* value = std::get_if<std::int64_t>(&found->second.value);
  CHECK(value != nullptr, path);
  return *value;
}

double Values::number(const std::string& path, double fallback) const {
  const auto found = values_.find(path);
  if (found == values_.end()) return fallback;
  if (const auto* whole = std::get_if<std::int64_t>(&found->second.value)) return static_cast<double>(*whole);
  const auto* value = std::get_if<double>(&found->second.value);
  CHECK(value != nullptr, path);
  return *value;
}

bool Values::flag(const std::string& path) const {
  const auto found = values_.find(path);
  if (found == values_.end()) return false;
  const auto* value = std::get_if<bool>(&found->second.value);
  CHECK(value != nullptr, path);
  return *value;
}

std::string Values::text(const std::string& path, const std::string& fallback) const {
  const auto found = values_.find(path);
  if (found == values_.end()) return fallback;
  const auto* value = std::get_if<std::string>(&found->second.value);
  CHECK(value != nullptr, path);
  return *value;
}

std::size_t Values::count(const std::string& path) const {
  const auto found = counts_.find(path);
  return found == counts_.end() ? 0 : found->second;
}

const Position* Values::position(const std::string& path) const {
  const auto found = values_.find(path);
  return found == values_.end() ? nullptr : &found->second.at;
}

}  // namespace tandem
