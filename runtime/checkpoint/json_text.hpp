// JSON to be written. A value of the JSON library takes memory to be destroyed, and ends the process where there is
// none: a save must fail instead. Must not know what it says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

class JsonText {
 public:
  static JsonText object() { return JsonText(Kind::Object); }
  static JsonText array() { return JsonText(Kind::Array); }
  // Throw where the text is not UTF-8.
  static JsonText text(const std::string& text);
  static JsonText number(std::int64_t number);
  static JsonText number(double number);

  // Of an object, at its end.
  JsonText& append(const std::string& key, JsonText value);
  // Of an object whose keys are in order, each once.
  JsonText& set(const std::string& key, JsonText value);
  // Of an array.
  JsonText& push_back(JsonText value);

  // In one line, or, with an indent of two spaces a level, an item a line.
  std::string dump(bool lines = false) const;

 private:
  enum class Kind : std::uint8_t { Scalar, Array, Object };
  explicit JsonText(Kind kind) : kind_(kind) {}
  void dump(std::string& out, bool lines, std::size_t level) const;

  Kind kind_;
  std::string scalar_;             // as it is written
  std::vector<std::string> keys_;  // of values_; an object's
  std::vector<JsonText> values_;
};

}  // namespace tandem
