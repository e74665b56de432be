#include "core/yaml/checker.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/yaml/suggest.hpp"

namespace tandem {
namespace {

bool is_scalar(ValueType type) { return type != ValueType::Map && type != ValueType::List; }

bool begins_like_number(const Node& node) {
  return node.kind == NodeKind::Scalar && !node.text.empty() &&
         std::string_view("0123456789.+-").find(node.text[0]) != std::string_view::npos;
}

// The alternative of the node's kind; among scalars, numbers and quantities are those that begin like a number.
const Schema* branch_for(const Node& node, const Schema& schema) {
  const Schema* found = nullptr;
  for (const Schema& branch : schema.one_of) {
    const bool fits = node.kind == NodeKind::Map        ? branch.type == ValueType::Map
                      : node.kind == NodeKind::Sequence ? branch.type == ValueType::List
                                                        : is_scalar(branch.type);
    if (!fits) continue;
    const bool is_numeric = branch.type != ValueType::Text;
    if (found == nullptr || is_numeric == begins_like_number(node)) found = &branch;
  }
  return found;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string shown_path(const std::string& path) { return path.empty() ? "file" : path; }

}  // namespace

const Case* case_of(const Node& map, const Schema& schema) {
  for (const Case& rule : schema.cases)
    if (const Node* chosen = map.find(rule.key);
        chosen != nullptr && (rule.value.empty() || chosen->text == rule.value))
      return &rule;
  return nullptr;
}

std::string hint(const std::string& word, const std::vector<std::string>& allowed) {
  const std::string near = suggest(word, allowed);
  return near.empty() ? "" : ", did you mean '" + near + "'?";
}

std::string child_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// A node that was found wrong is not looked at again: one message says what to correct.
void Checker::check(Node& node, const Schema& schema, const std::string& path) {
  if (!path.empty() && findings_->is_spoiled(path)) return;
  findings_->collect([&] { check_sound(node, schema, path); });
}

void Checker::check_sound(Node& node, const Schema& schema, const std::string& path) {
  if (!schema.one_of.empty()) return check_one_of(node, schema, path);
  switch (schema.type) {
    case ValueType::Map:
      return check_map(node, schema, path);
    case ValueType::List:
      return check_list(node, schema, path);
    case ValueType::Text:
      return check_text(node, schema, path);
    case ValueType::Integer:
      return values_->set(path, node.at, checked_integer(node, schema, path));
    case ValueType::Number:
      return values_->set(path, node.at, checked_number(node, schema, path));
    case ValueType::Flag:
      return values_->set(path, node.at, checked_flag(node, schema, path));
    case ValueType::Quantity:
      return values_->set(path, node.at, checked_quantity(node, schema, path));
  }
  CHECK(false, path, static_cast<int>(schema.type));
}

void Checker::check_one_of(Node& node, const Schema& schema, const std::string& path) {
  const Schema* branch = branch_for(node, schema);
  if (branch == nullptr || node.kind == NodeKind::Null)
    refuse(node.at, path, "is " + describe(node), allowed_text(schema));
  if (!branch->is_sourced) return check(node, *branch, path);
  CHECK(branch->find("value") != nullptr && branch->find("source") != nullptr, path,
        "has a schema that is not sourced");
  // {value:, source:}: the value stands at the path of the whole.
  check_keys(node, *branch, path);
  Node* value = node.find("value");
  if (value == nullptr) {
    miss(node, child_path(path, "value"), "is missing", allowed_text(schema.one_of.front()));
    return findings_->spoil(path);
  }
  check(*value, branch->find("value")->schema, path);
  if (Node* source = node.find("source")) check(*source, branch->find("source")->schema, child_path(path, "source"));
}

void Checker::check_keys(const Node& map, const Schema& schema, const std::string& path) {
  if (!schema.additional.empty()) return;
  const Case* rule = case_of(map, schema);
  const std::vector<std::string> taken = rule != nullptr ? rule->taken : schema.keys();
  for (const Entry& entry : map.entries) {
    if (schema.find(entry.key) != nullptr) continue;
    findings_->add(Finding(entry.at, child_path(path, printable(entry.key)),
                           "is not a key here" + hint(entry.key, taken), join(taken)));
    // Most likely it is this key that was meant, so that one is neither missing nor at its default.
    const std::string meant = suggest(entry.key, taken);
    if (!meant.empty() && map.find(meant) == nullptr) findings_->spoil(child_path(path, meant));
  }
}

void Checker::miss(const Node& map, const std::string& path, const std::string& problem, const std::string& allowed) {
  if (findings_->is_spoiled(path) || findings_->is_open(path)) return;
  findings_->add(Finding(map.at, path, problem, allowed));
}

void Checker::check_map(Node& map, const Schema& schema, const std::string& path) {
  if (map.kind != NodeKind::Map) refuse(map.at, shown_path(path), "is " + describe(map), allowed_text(schema));
  check_keys(map, schema, path);
  if (schema.has_one_key && map.entries.size() != 1)
    refuse(map.at, shown_path(path), "has " + std::to_string(map.entries.size()) + " keys", allowed_text(schema));
  // What decides which other keys are taken comes first: a slip in it explains the rest.
  for (const Case& rule : schema.cases)
    if (Node* node = map.find(rule.key)) check(*node, schema.find(rule.key)->schema, child_path(path, rule.key));
  const Case* rule = apply_cases(map, schema, path);
  for (const Property& property : schema.properties)
    if (Node* node = map.find(property.key))
      check(*node, schema.find(property.key, rule)->schema, child_path(path, property.key));
  // A key that was meant to be there, and stands under another name, would decide what is needed.
  const bool is_decided = rule != nullptr || std::any_of(schema.cases.begin(), schema.cases.end(), [&](const Case& c) {
                            return c.value.empty() && findings_->is_spoiled(child_path(path, c.key));
                          });
  for (const std::string& key : schema.required)
    if (!is_decided && map.find(key) == nullptr)
      miss(map, child_path(path, key), "is missing", allowed(schema.find(key)->schema));
  check_option_names(map, schema, path);
  complete(map, schema, rule, path);
  check_relations(schema, rule, path);
}

const Case* Checker::apply_cases(const Node& map, const Schema& schema, const std::string& path) {
  const Case* rule = case_of(map, schema);
  if (rule == nullptr) return nullptr;
  const Node& node = *map.find(rule->key);
  const std::string chosen = rule->key + (rule->value.empty() ? "" : " '" + rule->value + "'");
  for (const Entry& entry : map.entries)
    if (!contains(rule->taken, entry.key) && schema.find(entry.key) != nullptr)
      findings_->add(
          Finding(entry.at, child_path(path, entry.key),
                  chosen + elsewhere(node.at, entry.at) + " takes no such key" + hint(entry.key, rule->taken),
                  join(rule->taken)));
  for (const std::string& key : rule->required)
    if (map.find(key) == nullptr)
      miss(map, child_path(path, key), "is missing; " + chosen + elsewhere(node.at, map.at) + " needs it",
           allowed_text(schema.find(key, rule)->schema));
  return rule;
}

// Options of a registered file: their names are in its registry, their values are its own matter.
void Checker::check_option_names(const Node& map, const Schema& schema, const std::string& path) {
  if (schema.additional.empty()) return;
  // Which options there are says the name: without one that is known, nothing can be said of theirs.
  const bool is_named = values_->has(child_path(path, "name"));
  const std::vector<std::string>* options = names_->policy_options(values_->text(child_path(path, "name")));
  std::vector<std::string> allowed = schema.keys();
  if (options != nullptr) allowed.insert(allowed.end(), options->begin(), options->end());
  for (const Entry& entry : map.entries) {
    if (schema.find(entry.key) != nullptr) continue;
    const std::string at = child_path(path, printable(entry.key));
    findings_->collect([&] {
      if (is_named && !contains(allowed, entry.key))
        refuse(entry.at, at, "is not an option of this policy" + hint(entry.key, allowed), join(allowed));
      if (entry.value.kind != NodeKind::Scalar)
        refuse(entry.value.at, at, "is " + describe(entry.value), "a word or a number");
      values_->set(at, entry.value.at, entry.value.text);
    });
  }
}

void Checker::complete(Node& map, const Schema& schema, const Case* rule, const std::string& path) {
  for (const Property& general : schema.properties) {
    const Property& property = *schema.find(general.key, rule);
    if (!property.fallback || map.find(property.key) != nullptr) continue;
    if (rule != nullptr && !contains(rule->taken, property.key)) continue;
    if (findings_->is_spoiled(child_path(path, property.key))) continue;
    Node node = read_yaml_value(*property.fallback, "default", property.key);
    visit_positions(node, [](Position& at) { at.distance = kDefaultDistance; });
    check(node, property.schema, child_path(path, property.key));
    map.at_key(property.key, map.at) = std::move(node);
  }
}

void Checker::check_relations(const Schema& schema, const Case* rule, const std::string& path) {
  for (const Property& general : schema.properties) {
    const Property& property = *schema.find(general.key, rule);
    const std::string& divisor_key = property.schema.multiple_of;
    const std::string at = child_path(path, property.key), divisor_at = child_path(path, divisor_key);
    if (divisor_key.empty() || !values_->has(at) || !values_->has(divisor_at)) continue;
    const std::int64_t value = values_->integer(at), divisor = values_->integer(divisor_at);
    CHECK(divisor > 0, at, "has a schema whose divisor may be 0:", divisor_key);
    if (value % divisor == 0) continue;
    const Position &value_place = *values_->position(at), &divisor_place = *values_->position(divisor_at);
    const std::string shown_value = std::to_string(value), shown_divisor = std::to_string(divisor);
    if (value_place.distance <= divisor_place.distance) {
      findings_->add(Finding(value_place, at,
                             shown_value + " is not divisible by " + divisor_key + " (" + shown_divisor + ")" +
                                 elsewhere(divisor_place, value_place),
                             "a multiple of " + shown_divisor));
    } else {
      findings_->add(Finding(divisor_place, divisor_at,
                             shown_divisor + " does not divide " + property.key + " (" + shown_value + ")" +
                                 elsewhere(value_place, divisor_place),
                             "a divisor of " + shown_value));
    }
  }
}

void Checker::check_list(Node& list, const Schema& schema, const std::string& path) {
  if (list.kind != NodeKind::Sequence) refuse(list.at, path, "is " + describe(list), allowed_text(schema));
  const std::size_t count = list.items.size();
  CHECK(!schema.items.empty() && schema.least_items <= schema.most_items, path, "has a schema that no list fits");
  if (count < schema.least_items || count > schema.most_items)
    refuse(list.at, path, "is a list of " + std::to_string(count), allowed_text(schema));
  for (std::size_t i = 0; i < count; ++i)
    check(list.items[i], schema.items[std::min(i, schema.items.size() - 1)], child_path(path, std::to_string(i)));
  values_->set_count(path, count);
  if (schema.is_increasing) check_order(list, path);
}

void Checker::check_order(const Node& list, const std::string& path) {
  for (std::size_t i = 1; i < list.items.size(); ++i) {
    const std::string at = child_path(path, std::to_string(i));
    const std::string before = child_path(path, std::to_string(i - 1)) + ".0";
    if (!values_->has(at + ".0") || !values_->has(before)) continue;
    if (values_->number(at + ".0") <= values_->number(before))
      findings_->add(
          Finding(list.items[i].at, at, "its x is not above the one before", "points in increasing order of x"));
  }
}

std::string Checker::allowed(const Schema& schema) const {
  return allowed_text(schema, schema.registry.empty() ? schema.words : names_->of(schema.registry));
}

void Checker::check_text(const Node& node, const Schema& schema, const std::string& path) {
  const std::vector<std::string> words = schema.registry.empty() ? schema.words : names_->of(schema.registry);
  if (node.kind != NodeKind::Scalar) refuse(node.at, path, "is " + describe(node), allowed(schema));
  const bool is_choice = !words.empty() || !schema.registry.empty();
  if (is_choice && !contains(words, node.text))
    refuse(node.at, path, shown(node.text) + " is not known" + hint(node.text, words), allowed(schema));
  if (node.text.size() < schema.least_length || (schema.most_length != 0 && node.text.size() > schema.most_length))
    refuse(node.at, path, "is a text of " + std::to_string(node.text.size()) + " bytes",
           "from " + std::to_string(schema.least_length) + " to " + std::to_string(schema.most_length) + " bytes");
  const bool is_plain = schema.characters.empty() ||
                        (!node.text.empty() && node.text.find_first_not_of(schema.characters) == std::string::npos);
  if (!is_plain) refuse(node.at, path, shown(node.text) + " is not a name", "letters, digits, '_', '-' and '.'");
  values_->set(path, node.at, node.text);
}

}  // namespace tandem
