// A JSON Schema as a tree that the checker walks: the one source of keys, types, ranges and defaults.
// Knows the subset of JSON Schema that scenarios and profiles use and their x- keywords ($comment of
// docs/profile.schema.json); must not know YAML
// values or any key by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

enum class ValueType { Map, List, Text, Integer, Number, Flag, Quantity };

struct UnitFamily {  // x-units: the units that a quantity of this kind may have, as factors on the base unit
  std::string noun;  // "a size"
  std::string example;
  std::vector<std::pair<std::string, std::int64_t>> units;
  std::vector<std::string> names() const;
};

struct Bound {
  double value = 0;
  std::string text;  // as the schema has it
  bool is_exclusive = false;
};

struct Property;

// allOf / if / then: where `key` has this value, or any if there is none here, these keys are needed, only those are
// taken, and some mean what stands here.
struct Case {
  std::string key, value;
  std::vector<std::string> required, taken;
  std::vector<Property> properties;
};

struct Schema {
  ValueType type = ValueType::Map;
  std::string description;
  // Map
  std::vector<Property> properties;
  std::vector<std::string> required;  // where no case holds
  std::vector<Case> cases;
  std::vector<Schema> additional;  // at most one: what keys beside the properties hold
  std::string options_of;          // x-options-of: the registry whose entry, named by key `name`, lists those keys
  bool is_sourced = false;         // x-sourced: {value:, source:} around a number
  bool has_one_key = false;        // maxProperties: 1, and minProperties: 1: the properties exclude each other
  // List
  std::vector<Schema> items;  // one for all, or one for each place
  std::size_t least_items = 0, most_items = 0;
  bool is_increasing = false;  // x-increasing: first members of the items ascend
  // Text
  std::vector<std::string> words;  // enum
  std::string registry;            // x-registry: the words are the names of registered files
  std::string noun;                // x-noun: what the text is, for messages
  std::string characters;          // pattern ^[...]+$; empty: any
  std::size_t least_length = 0, most_length = 0;
  // Integer, Number, Quantity
  std::optional<Bound> least, most;
  std::string unit;            // Quantity: a key of units()
  std::string multiple_of;     // x-multiple-of: a sibling key
  std::vector<Schema> one_of;  // if not empty: alternatives, told apart by the kind of the value

  const Property* find(const std::string& key) const;
  // What the key means in this case of it, if there is one.
  const Property* find(const std::string& key, const Case* rule) const;
  std::vector<std::string> keys() const;
};

struct Property {
  std::string key;
  Schema schema;
  std::optional<std::string> fallback;  // the default, as JSON text (which is YAML)
};

// Of a JSON Schema's text, which may refer to the profile's.
Schema schema_from(const std::string& text);
// Built once from the text that the build embeds.
const Schema& profile_schema();
const UnitFamily& unit_family(const std::string& name);
// The embedded texts: scenarios without what model families add (family_schema.hpp), and profiles.
extern const char* const kScenarioBaseText;
extern const char* const kProfileSchemaText;

// "an integer from 1 to 10000", "a size from 1B to 1PiB with a unit (B, kB, ...)": for messages. `words` are those of
// the registry where the schema has one.
std::string allowed_text(const Schema& schema, const std::vector<std::string>& words = {});

}  // namespace tandem
