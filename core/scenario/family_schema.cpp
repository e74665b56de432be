#include "core/scenario/family_schema.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/check.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// Keys that say what is computed.
constexpr const char* kNaming[] = {"family", "model", "config"};

Json rule_of(const FamilyKey& key) {
  Json rule = Json::parse(key.rule);
  if (key.fallback) std::visit([&](const auto& value) { rule["default"] = value; }, *key.fallback);
  return rule;
}

// What families say of a key that they declare in different words: no more than what holds for all of them.
Json common_rule(const Json& a, const Json& b) {
  Json common = {{"description", "What the family says of it."}};
  if (a.value("type", "") != "integer" || b.value("type", "") != "integer") return common;
  common["type"] = "integer";
  common["minimum"] = std::min(a["minimum"].get<std::int64_t>(), b["minimum"].get<std::int64_t>());
  common["maximum"] = std::max(a["maximum"].get<std::int64_t>(), b["maximum"].get<std::int64_t>());
  return common;
}

// The rules of the keys as they hold for all families, in the order in which they are declared.
class CommonRules {
 public:
  CommonRules(const std::vector<DeclaredFamily>& families, const Json& shared) {
    for (const DeclaredFamily& family : families)
      for (const FamilyKey& key : family.keys->own) add(key, shared);
  }
  const Json& rules() const { return rules_; }
  // Several families declare it, or one declares a shared one anew, in different words.
  bool differs(const std::string& key) const { return differing_.contains(key); }

 private:
  void add(const FamilyKey& key, const Json& shared) {
    const Json rule = rule_of(key);
    if (shared.contains(key.name)) return void(differing_.insert(key.name));
    if (!rules_.contains(key.name)) return void(rules_[key.name] = rule);
    if (rules_[key.name] == rule && !differs(key.name)) return;
    rules_[key.name] = common_rule(rules_[key.name], rule);
    differing_.insert(key.name);
  }
  Json rules_ = Json::object();
  std::set<std::string> differing_;
};

Json case_of(const DeclaredFamily& family, const CommonRules& common) {
  Json own = Json::object();
  std::vector<std::string> required, taken(std::begin(kNaming), std::end(kNaming));
  for (const FamilyKey& key : family.keys->own) {
    taken.push_back(key.name);
    if (key.required) required.push_back(key.name);
    if (common.differs(key.name)) own[key.name] = rule_of(key);
  }
  for (const std::string& key : family.keys->shared)
    if (std::find(taken.begin(), taken.end(), key) == taken.end()) taken.push_back(key);
  required.insert(required.end(), family.keys->shared_required.begin(), family.keys->shared_required.end());
  Json then = {{"required", required}, {"propertyNames", {{"enum", taken}}}};
  if (!own.empty()) then["properties"] = own;
  Json example = {{"family", family.name}};
  for (const auto& [key, value] : family.keys->small)
    std::visit([&, &name = key](const auto& item) { example[name] = item; }, value);
  then["examples"] = {example};
  return {{"if", {{"properties", {{"family", {{"const", family.name}}}}}}}, {"then", then}};
}

// Keys of text, or of images alone where the first of these is given.
void add_generation(const DeclaredKeys& declared, Json& generate) {
  Json of_text = Json::array(), of_images = Json::array();
  for (const FamilyKey& key : declared.generate) {
    generate["properties"][key.name] = rule_of(key);
    if (key.required) of_text.push_back(key.name);
  }
  for (const FamilyKey& key : declared.denoise) {
    generate["properties"][key.name] = rule_of(key);
    of_images.push_back(key.name);
  }
  if (of_images.empty()) return;
  generate["allOf"] = {{{"if", {{"required", Json::array({of_images.front()})}}},
                        {"then", {{"propertyNames", {{"enum", of_images}}}}},
                        {"else", {{"required", of_text}}}}};
}

}  // namespace

std::string scenario_schema_text(const DeclaredKeys& declared) {
  const std::vector<DeclaredFamily>& families = declared.families;
  Json schema = Json::parse(kScenarioBaseText);
  Json& workload = schema["properties"]["workload"];
  const Json shared = workload["properties"];
  Json properties = Json::object();
  for (const char* key : kNaming) properties[key] = shared[key];
  for (const DeclaredFamily& family : families) properties["family"]["examples"].push_back(family.name);
  const CommonRules common(families, shared);
  for (const auto& [key, rule] : common.rules().items()) properties[key] = rule;
  for (const auto& [key, rule] : shared.items()) properties[key] = rule;
  // What a family says anew of a shared key must not contradict it: a JSON Schema has both at once.
  workload["properties"] = properties;
  workload["allOf"] = Json::array();
  for (const DeclaredFamily& family : families) workload["allOf"].push_back(case_of(family, common));
  for (const FamilyKey& key : declared.parallel)
    schema["properties"]["parallel"]["properties"][key.name] = rule_of(key);
  add_generation(declared, schema["properties"]["generate"]);
  return schema.dump(2) + "\n";
}

Schema scenario_schema(const DeclaredKeys& declared) { return schema_from(scenario_schema_text(declared)); }

}  // namespace tandem
