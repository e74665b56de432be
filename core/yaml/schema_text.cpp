// What a schema allows, in words.
#include "core/yaml/position.hpp"
#include "core/yaml/schema.hpp"

namespace tandem {
namespace {

std::string range_text(const Schema& schema) {
  const auto& least = schema.least;
  const auto& most = schema.most;
  std::string out;
  if (least) out += (least->is_exclusive ? " above " : " from ") + least->text;
  if (most) out += (most->is_exclusive ? " below " : " to ") + most->text;
  return out;
}

std::string list_text(const Schema& schema) {
  if (schema.least_items == schema.most_items) return "a list of " + std::to_string(schema.least_items) + " values";
  return "a list of at most " + std::to_string(schema.most_items) + " values";
}

}  // namespace

std::vector<std::string> UnitFamily::names() const {
  std::vector<std::string> out;
  for (const auto& [name, factor] : units) out.push_back(name);
  return out;
}

const Property* Schema::find(const std::string& key) const {
  for (const Property& property : properties)
    if (property.key == key) return &property;
  return nullptr;
}

const Property* Schema::find(const std::string& key, const Case* rule) const {
  if (rule != nullptr)
    for (const Property& property : rule->properties)
      if (property.key == key) return &property;
  return find(key);
}

std::vector<std::string> Schema::keys() const {
  std::vector<std::string> out;
  for (const Property& property : properties) out.push_back(property.key);
  return out;
}

std::string allowed_text(const Schema& schema, const std::vector<std::string>& words) {
  if (!schema.one_of.empty()) {
    std::vector<std::string> branches;
    for (const Schema& branch : schema.one_of) branches.push_back(allowed_text(branch, words));
    return join(branches, " or ");
  }
  if (schema.least && schema.most && schema.least->value == schema.most->value) return schema.least->text;
  switch (schema.type) {
    case ValueType::Map:
      if (schema.is_sourced) return "{value:, source:}";
      return (schema.has_one_key ? "a map with one of " : "a map with ") + join(schema.keys());
    case ValueType::List:
      return list_text(schema);
    case ValueType::Text:
      if (!words.empty()) return join(words);
      return schema.words.empty() ? schema.noun : join(schema.words);
    case ValueType::Integer:
      return !schema.words.empty() ? join(schema.words) : "an integer" + range_text(schema);
    case ValueType::Number:
      return "a number" + range_text(schema);
    case ValueType::Flag:
      return "true or false";
    case ValueType::Quantity: {
      const UnitFamily& family = unit_family(schema.unit);
      return family.noun + range_text(schema) + " with a unit (" + join(family.names()) + "), such as " +
             family.example;
    }
  }
  return "";
}

}  // namespace tandem
