#include "core/yaml/schema.hpp"

#include <nlohmann/json.hpp>

#include "core/base/check.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kProfileFile = "profile.schema.json";

const Json& profile_file() {
  static const Json kFile = Json::parse(kProfileSchemaText);
  return kFile;
}

// Follows $ref; keywords beside it win over those that it leads to. Profile files only refer to themselves.
Json resolved(const Json& json) {
  if (!json.contains("$ref")) return json;
  std::string reference = json["$ref"];
  if (reference.starts_with(kProfileFile)) reference.erase(0, kProfileFile.size());
  CHECK(reference.empty() || reference.starts_with('#'), reference, "leads out of the two files");
  const std::string pointer = reference.empty() ? "" : reference.substr(1);
  Json target = resolved(profile_file().at(Json::json_pointer(pointer)));
  for (const auto& [key, value] : json.items())
    if (key != "$ref") target[key] = value;
  return target;
}

// Numbers as they are written.
std::vector<std::string> strings(const Json& json, const char* key) {
  std::vector<std::string> out;
  if (!json.contains(key)) return out;
  for (const Json& item : json[key]) out.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  return out;
}

ValueType type_of(const Json& json) {
  if (json.contains("x-unit")) return ValueType::Quantity;
  if (!json.contains("type") || json["type"].is_array()) return ValueType::Text;
  const std::string type = json["type"];
  if (type == "object") return ValueType::Map;
  if (type == "array") return ValueType::List;
  if (type == "integer") return ValueType::Integer;
  if (type == "number") return ValueType::Number;
  if (type == "boolean") return ValueType::Flag;
  CHECK(type == "string", type);
  return ValueType::Text;
}

// Expands the character class of a pattern ^[...]+$.
std::string characters_of(const std::string& pattern) {
  CHECK(pattern.starts_with("^[") && pattern.ends_with("]+$"), pattern);
  const std::string inside = pattern.substr(2, pattern.size() - 5);
  std::string out;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (i + 2 < inside.size() && inside[i + 1] == '-') {
      const auto first = static_cast<unsigned char>(inside[i]), last = static_cast<unsigned char>(inside[i + 2]);
      for (int c = first; c <= last; ++c) out += static_cast<char>(c);
      i += 2;
    } else {
      out += inside[i];
    }
  }
  return out;
}

std::optional<Bound> bound(const Json& json, const Schema& schema, const char* inclusive, const char* exclusive) {
  const char* key = json.contains(inclusive) ? inclusive : exclusive;
  if (!json.contains(key)) return std::nullopt;
  const Json& value = json[key];
  if (!value.is_string()) return Bound{value.get<double>(), value.dump(), key == exclusive};
  const std::string text = value;
  std::size_t used = 0;
  const double number = std::stod(text, &used);
  for (const auto& [unit, factor] : unit_family(schema.unit).units)
    if (unit == text.substr(used)) return Bound{number * static_cast<double>(factor), text, false};
  CHECK(false, text);
  return std::nullopt;
}

Schema build(const Json& reference);

std::vector<Property> properties_of(const Json& json) {
  std::vector<Property> out;
  if (!json.contains("properties")) return out;
  for (const auto& [key, value] : json["properties"].items()) {
    const Json property = resolved(value);
    std::optional<std::string> fallback;
    if (property.contains("default")) fallback = property["default"].dump();
    out.push_back({key, build(value), fallback});
  }
  return out;
}

void build_map(const Json& json, Schema& out) {
  out.properties = properties_of(json);
  out.required = strings(json, "required");
  for (std::string& key : strings(json, "x-required")) out.required.push_back(std::move(key));
  if (json.contains("additionalProperties") && json["additionalProperties"].is_object())
    out.additional.push_back(build(json["additionalProperties"]));
  out.options_of = json.value("x-options-of", "");
  out.is_sourced = json.value("x-sourced", false);
  out.has_one_key = json.value("maxProperties", std::size_t{0}) == 1;
  if (!json.contains("allOf")) return;
  for (const Json& rule : json["allOf"]) {
    const Json &condition = rule["if"], &then = rule["then"];
    Case& made = out.cases.emplace_back(
        Case{"", "", strings(then, "required"), strings(then["propertyNames"], "enum"), properties_of(then)});
    if (condition.contains("required")) {
      made.key = condition["required"].front();
      for (std::string& key : strings(rule["else"], "required")) out.required.push_back(std::move(key));
      continue;
    }
    const auto chosen = condition["properties"].items().begin();
    made.key = chosen.key(), made.value = chosen.value()["const"];
  }
}

void build_list(const Json& json, Schema& out) {
  const Json none = Json::array();
  for (const Json& place : json.contains("prefixItems") ? json["prefixItems"] : none) out.items.push_back(build(place));
  if (json.contains("items")) out.items.push_back(build(json["items"]));
  out.least_items = json.value("minItems", std::size_t{0});
  out.most_items = json.value("maxItems", std::size_t{0});
  out.is_increasing = json.value("x-increasing", false);
}

Schema build(const Json& reference) {
  const Json json = resolved(reference);
  Schema out;
  out.type = type_of(json);
  out.description = json.value("description", "");
  if (json.contains("oneOf"))
    for (const Json& branch : json["oneOf"]) out.one_of.push_back(build(branch));
  if (out.type == ValueType::Map) build_map(json, out);
  if (out.type == ValueType::List) build_list(json, out);
  out.words = strings(json, "enum");
  out.noun = json.value("x-noun", "a text");
  out.registry = json.value("x-registry", "");
  out.unit = json.value("x-unit", "");
  out.multiple_of = json.value("x-multiple-of", "");
  out.least_length = json.value("minLength", std::size_t{0});
  out.most_length = json.value("maxLength", std::size_t{0});
  if (out.type == ValueType::Text && json.contains("pattern")) out.characters = characters_of(json["pattern"]);
  const bool is_quantity = out.type == ValueType::Quantity;
  out.least = bound(json, out, is_quantity ? "x-minimum" : "minimum", "exclusiveMinimum");
  out.most = bound(json, out, is_quantity ? "x-maximum" : "maximum", "exclusiveMaximum");
  return out;
}

std::map<std::string, UnitFamily> build_units() {
  std::map<std::string, UnitFamily> out;
  for (const auto& [name, json] : profile_file()["x-units"].items()) {
    UnitFamily family{json["noun"], json["example"], {}};
    for (const auto& [unit, factor] : json["units"].items()) family.units.emplace_back(unit, factor);
    CHECK(!family.units.empty(), name, "is a family of no units");
    out.emplace(name, family);
  }
  return out;
}

}  // namespace

const UnitFamily& unit_family(const std::string& name) {
  static const std::map<std::string, UnitFamily> kUnits = build_units();
  return kUnits.at(name);
}

Schema schema_from(const std::string& text) { return build(Json::parse(text)); }

const Schema& profile_schema() {
  static const Schema kSchema = build(profile_file());
  return kSchema;
}

}  // namespace tandem
