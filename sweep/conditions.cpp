#include "sweep/conditions.hpp"

#include <algorithm>

#include "core/yaml/checker.hpp"

namespace tandem {
namespace {

bool is_figure(const std::string& name) {
  const auto& all = policy_figures();
  return std::any_of(all.begin(), all.end(), [&](const PolicyFigure& figure) { return figure.name == name; });
}

// The value at `path` below a node; null: there is none.
const Node* below(const Node& node, const std::string& path) {
  if (path.empty()) return &node;
  const std::string key = path.substr(0, path.find('.'));
  const Node* next = node.find(key);
  if (next == nullptr) return nullptr;
  return below(*next, path.size() > key.size() ? path.substr(key.size() + 1) : "");
}

// Of a policy and a machine the name counts.
Operand operand_at(const Node& node) {
  const Node* name = node.kind == NodeKind::Map ? node.find("name") : nullptr;
  if (name != nullptr) return name->text;
  if (node.kind != NodeKind::Scalar) return to_flow(node);
  return node.is_quoted ? Operand(node.text) : operand_of(node.text);
}

// The rest of `path` if the key is it or holds it.
std::optional<std::string> rest_of(const std::string& path, const std::string& key) {
  if (path == key) return "";
  return path.starts_with(key + ".") ? std::optional(path.substr(key.size() + 1)) : std::nullopt;
}

bool is_swept(const SweepPlan& plan, const std::string& path) {
  for (const Axis& axis : plan.axes)
    for (const AxisValue& value : axis.values)
      for (const Setting& setting : value.settings)
        if (rest_of(path, setting.key)) return true;
  return false;
}

void add_paths(const Node& node, const std::string& path, std::vector<std::string>& paths) {
  for (const Entry& entry : node.entries) {
    const std::string child = child_path(path, entry.key);
    paths.push_back(child);
    if (entry.key != "machine") add_paths(entry.value, child, paths);
  }
}

std::string hint_for(const std::string& name, const Node& base) {
  std::vector<std::string> known;
  add_paths(base, "", known);
  for (const PolicyFigure& figure : policy_figures()) known.emplace_back(figure.name);
  return hint(name, known);
}

}  // namespace

Conditions::Conditions(const SweepPlan& plan, const Scenario& base)
    : plan_(plan), base_(read_yaml(base.text, "the base")) {
  for (const Expression& expression : plan.constraints) {
    bool of_results = false;
    for (const std::string& name : expression.names()) {
      of_results = of_results || is_figure(name);
      if (is_figure(name) || is_swept(plan, name) || below(base_, name) != nullptr) continue;
      refuse(expression.at(), "constraint", "there is no " + shown(name) + hint_for(name, base_),
             "keys of the base or that vary, and figures of results");
    }
    (of_results ? on_results_ : on_keys_).push_back(&expression);
  }
}

Operand Conditions::value_of(const std::string& name, std::size_t number, const Position& at) const {
  for (const AxisValue* value : plan_.values_of(number))
    for (const Setting& setting : value->settings) {
      const std::optional<std::string> rest = rest_of(name, setting.key);
      if (!rest) continue;
      const Node* node = below(setting.value, *rest);
      if (node != nullptr) return operand_at(*node);
      refuse(at, "constraint", shown(name) + " is not given by " + value->label, "a key that each value of it has");
    }
  const Node* node = below(base_, name);
  if (node == nullptr) refuse(at, "constraint", shown(name) + " is given by some values alone", "a key that all have");
  return operand_at(*node);
}

bool Conditions::allows(std::size_t number) const {
  return std::all_of(on_keys_.begin(), on_keys_.end(), [&](const Expression* one) {
    return one->holds([&](const std::string& name) { return value_of(name, number, one->at()); });
  });
}

std::optional<std::string> Conditions::broken_by(const SweepRow& row) const {
  for (const Expression* one : on_results_) {
    std::string figures;
    const bool holds = one->holds([&](const std::string& name) -> Operand {
      if (!is_figure(name)) return value_of(name, row.number, one->at());
      figures += (figures.empty() ? "" : ", ") + name + " is " + policy_figure(name).shown(figure_of(row, name));
      return figure_of(row, name);
    });
    if (!holds) return "breaks " + one->text() + ": " + figures;
  }
  return std::nullopt;
}

}  // namespace tandem
