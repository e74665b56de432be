#include "runtime/checkpoint/json_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace tandem {

// The library writes single values: those are destroyed without memory.
JsonText JsonText::text(const std::string& text) {
  JsonText out(Kind::Scalar);
  out.scalar_ = nlohmann::json(text).dump();
  return out;
}

JsonText JsonText::number(std::int64_t number) {
  JsonText out(Kind::Scalar);
  out.scalar_ = std::to_string(number);
  return out;
}

JsonText JsonText::number(double number) {
  JsonText out(Kind::Scalar);
  out.scalar_ = nlohmann::json(number).dump();
  return out;
}

JsonText& JsonText::append(const std::string& key, JsonText value) {
  values_.reserve(keys_.size() + 1);
  keys_.push_back(key);
  values_.push_back(std::move(value));
  return *this;
}

JsonText& JsonText::set(const std::string& key, JsonText value) {
  const auto at = std::lower_bound(keys_.begin(), keys_.end(), key);
  const auto index = at - keys_.begin();
  if (at != keys_.end() && *at == key) {
    values_[static_cast<std::size_t>(index)] = std::move(value);
    return *this;
  }
  keys_.insert(at, key);
  values_.insert(values_.begin() + index, std::move(value));
  return *this;
}

JsonText& JsonText::push_back(JsonText value) {
  values_.push_back(std::move(value));
  return *this;
}

std::string JsonText::dump(bool lines) const {
  std::string out;
  dump(out, lines, 0);
  return out;
}

void JsonText::dump(std::string& out, bool lines, std::size_t level) const {
  if (kind_ == Kind::Scalar) {
    out += scalar_;
    return;
  }
  const auto new_line = [&](std::size_t to) {
    if (lines && !values_.empty()) out += '\n' + std::string(2 * to, ' ');
  };
  out += kind_ == Kind::Object ? '{' : '[';
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (i > 0) out += ',';
    new_line(level + 1);
    if (kind_ == Kind::Object) out += nlohmann::json(keys_[i]).dump() + (lines ? ": " : ":");
    values_[i].dump(out, lines, level + 1);
  }
  new_line(level);
  out += kind_ == Kind::Object ? '}' : ']';
}

}  // namespace tandem
