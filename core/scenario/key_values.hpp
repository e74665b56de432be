// What a scenario gives for the keys of its model family: checked, in base units (bytes, ns). Must not know which keys
// there are: the family's file declares them (family_keys.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tandem {

using KeyValue = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>>;

class KeyValues {
 public:
  // For scenarios made in code: keys["layers"] = 12.
  class Slot {
   public:
    explicit Slot(KeyValue& value) : value_(&value) {}
    void operator=(std::int64_t value) { *value_ = value; }
    void operator=(int value) { *value_ = std::int64_t{value}; }
    void operator=(double value) { *value_ = value; }
    void operator=(bool value) { *value_ = value; }
    void operator=(const char* value) { *value_ = std::string(value); }
    void operator=(std::string value) { *value_ = std::move(value); }
    void operator=(std::vector<std::int64_t> value) { *value_ = std::move(value); }
    void operator=(const Slot&) = delete;

   private:
    KeyValue* value_;
  };
  Slot operator[](const std::string& key) { return Slot(values_[key]); }
  void set(const std::string& key, KeyValue value) { values_[key] = std::move(value); }
  // Keeps what is there.
  void fall_back(const std::string& key, const KeyValue& value) { values_.emplace(key, value); }

  bool has(std::string_view key) const { return values_.contains(key); }
  // Each CHECKs that the key is there and of that kind.
  std::int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;  // integers too
  bool flag(std::string_view key) const;
  const std::string& text(std::string_view key) const;
  const std::vector<std::int64_t>& integers(std::string_view key) const;
  // For what looks at scenarios of any family.
  std::int64_t integer_or(std::string_view key, std::int64_t fallback) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;

  const std::map<std::string, KeyValue, std::less<>>& all() const { return values_; }
  // As a file has it: 12, fused, true, [3, 4].
  static std::string words(const KeyValue& value);

 private:
  template <typename T>
  const T& get(std::string_view key) const;
  std::map<std::string, KeyValue, std::less<>> values_;
};

}  // namespace tandem
