// What a call of a primitive is told beside its operands: all numbers that change the result are here, none in a body.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace tandem {

class Attributes {
 public:
  using Value = std::variant<std::int64_t, double, std::string>;

  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Value>> values) : values_(values) {}
  void set(const std::string& name, Value value) { values_[name] = std::move(value); }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  std::int64_t integer(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const {
    return has(name) ? integer(name) : otherwise;
  }
  double number(std::string_view name) const;
  const std::string& word(std::string_view name) const;
  bool operator==(const Attributes&) const = default;

 private:
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace tandem
