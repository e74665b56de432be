#include "core/scenario/family_keys.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/check.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json described(const std::string& description) { return {{"description", description}}; }

Json integer_rule(Range range) {
  CHECK(range.least <= range.most, "a range of nothing", range.least, range.most);
  return {{"type", "integer"}, {"minimum", range.least}, {"maximum", range.most}};
}

FamilyKey key_of(const std::string& name, Json rule, const Json& more) {
  rule.update(more);
  return {name, rule.dump(), std::nullopt, /*required=*/true};
}

FamilyKey with(FamilyKey key, KeyValue fallback) {
  key.fallback = std::move(fallback);
  key.required = false;
  return key;
}

FamilyKey quantity(const std::string& name, const std::string& kind, const std::string& description,
                   const std::string& least = "") {
  Json rule = {{"$ref", "profile.schema.json#/$defs/" + kind}, {"description", description}};
  if (!least.empty()) rule["x-minimum"] = least;
  return key_of(name, rule, Json::object());
}

}  // namespace

KeyValues FamilyKeys::completed(KeyValues values) const {
  for (const FamilyKey& key : own)
    if (key.fallback) values.fall_back(key.name, *key.fallback);
  return values;
}

KeyValues FamilyKeys::small_instance() const {
  KeyValues values;
  for (const auto& [key, value] : small) values.set(key, value);
  return completed(std::move(values));
}

const std::vector<std::string>& training_keys() {
  static const std::vector<std::string> kKeys = {"batch",     "micro_batches",     "precision", "devices",
                                                 "partition", "optimizer",         "trained",   "lora",
                                                 "compress",  "sparse_activations"};
  return kKeys;
}

const std::vector<std::string>& recomputing_keys() {
  static const std::vector<std::string> kKeys = [] {
    std::vector<std::string> keys = training_keys();
    keys.insert(keys.end(), {"recompute", "checkpoint_every", "activation_bytes"});
    return keys;
  }();
  return kKeys;
}

const std::vector<std::string>& mixed_keys() {
  static const std::vector<std::string> kKeys = [] {
    std::vector<std::string> keys = recomputing_keys();
    keys.insert(keys.end(), {"mix", "mix_change", "mix_round"});
    return keys;
  }();
  return kKeys;
}

FamilyKey size_key(const std::string& name, Range range, const std::string& description) {
  return key_of(name, described(description), integer_rule(range));
}

FamilyKey size_key(const std::string& name, Range range, std::int64_t fallback, const std::string& description) {
  return with(size_key(name, range, description), fallback);
}

FamilyKey optional_key(const std::string& name, Range range, const std::string& description) {
  FamilyKey key = size_key(name, range, description);
  key.required = false;
  return key;
}

FamilyKey multiple_key(const std::string& name, Range range, const std::string& divisor,
                       const std::string& description) {
  Json rule = integer_rule(range);
  rule["x-multiple-of"] = divisor;
  return key_of(name, described(description), rule);
}

FamilyKey sizes_key(const std::string& name, std::size_t least_count, std::size_t most_count, Range range,
                    const std::string& description) {
  Json item = described("One of them.");
  item.update(integer_rule(range));
  return key_of(name, described(description),
                {{"type", "array"}, {"minItems", least_count}, {"maxItems", most_count}, {"items", item}});
}

FamilyKey sizes_key(const std::string& name, std::size_t least_count, std::size_t most_count, Range range,
                    const std::vector<std::int64_t>& fallback, const std::string& description) {
  return with(sizes_key(name, least_count, most_count, range, description), fallback);
}

FamilyKey number_key(const std::string& name, double least, double most, double fallback,
                     const std::string& description) {
  // Whole ones are written as such.
  const auto shown = [](double number) {
    return number == std::floor(number) ? Json(static_cast<std::int64_t>(number)) : Json(number);
  };
  return with(
      key_of(name, described(description), {{"type", "number"}, {"minimum", shown(least)}, {"maximum", shown(most)}}),
      fallback);
}

FamilyKey flag_key(const std::string& name, bool fallback, const std::string& description) {
  return with(key_of(name, described(description), {{"type", "boolean"}}), fallback);
}

FamilyKey path_key(const std::string& name, const std::string& description) {
  return key_of(name, described(description),
                {{"type", "string"}, {"x-noun", "a path"}, {"minLength", 1}, {"maxLength", 4096}});
}

FamilyKey word_key(const std::string& name, const std::vector<std::string>& words, const std::string& description) {
  CHECK(!words.empty(), name, "is a choice of no words");
  return with(key_of(name, described(description), {{"type", "string"}, {"enum", words}}), words.front());
}

FamilyKey bytes_key(const std::string& name, const std::string& description) {
  return quantity(name, "bytes", description);
}

FamilyKey time_key(const std::string& name, const std::string& least, const std::string& description) {
  return quantity(name, "time", description, least);
}

std::vector<FamilyKey> joined(std::initializer_list<std::vector<FamilyKey>> lists) {
  std::vector<FamilyKey> all;
  for (const std::vector<FamilyKey>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace tandem
