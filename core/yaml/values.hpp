// The checked values of a file by dotted path, in base units (bytes, ns, per second), with their positions.
// Must not know schemas or what any key means.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/yaml/position.hpp"

namespace tandem {

class Values {
 public:
  using Value = std::variant<std::int64_t, double, bool, std::string>;

  void set(const std::string& path, const Position& at, Value value) { values_[path] = {at, std::move(value)}; }
  void set_count(const std::string& path, std::size_t count) { counts_[path] = count; }

  bool has(const std::string& path) const { return values_.contains(path); }
  bool is_integer(const std::string& path) const;
  // Each takes the value that the schema made sure is there, or `fallback` for a key without a default.
  std::int64_t integer(const std::string& path, std::int64_t fallback = 0) const;
  double number(const std::string& path, double fallback = 0) const;  // integers too
  bool flag(const std::string& path) const;
  std::string text(const std::string& path, const std::string& fallback = "") const;
  // Texts whose path begins with `prefix`, by the rest of their path.
  std::map<std::string, std::string> texts_below(const std::string& prefix) const;
  // Those whose path is `prefix` and one more key, by that key; and lists of integers.
  std::map<std::string, Value> below(const std::string& prefix) const;
  std::map<std::string, std::vector<std::int64_t>> lists_below(const std::string& prefix) const;
  std::size_t count(const std::string& path) const;  // items of a list; 0 if it is not there
  const Position* position(const std::string& path) const;

 private:
  struct Placed {
    Position at;
    Value value;
  };
  std::map<std::string, Placed> values_;
  std::map<std::string, std::size_t> counts_;
};

}  // namespace tandem
