// Walks a tree beside its schema: finds what the schema does not allow, writes the defaults into the tree and the
// values that are allowed into a table. Must not know any key by name.
#pragma once

#include <string>

#include "core/yaml/findings.hpp"
#include "core/yaml/known_names.hpp"
#include "core/yaml/schema.hpp"
#include "core/yaml/values.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {

class Checker {
 public:
  Checker(const KnownNames& names, Values& values, Findings& findings)
      : names_(&names), values_(&values), findings_(&findings) {}
  // `path` is the node's dotted path, "" for the root. All faults are added to the findings.
  void check(Node& node, const Schema& schema, const std::string& path);

 private:
  void check_sound(Node& node, const Schema& schema, const std::string& path);
  void check_one_of(Node& node, const Schema& schema, const std::string& path);
  void check_map(Node& map, const Schema& schema, const std::string& path);
  void check_keys(const Node& map, const Schema& schema, const std::string& path);
  void check_option_names(const Node& map, const Schema& schema, const std::string& path);
  const Case* apply_cases(const Node& map, const Schema& schema, const std::string& path);
  void miss(const Node& map, const std::string& path, const std::string& problem, const std::string& allowed);
  void check_order(const Node& list, const std::string& path);
  void complete(Node& map, const Schema& schema, const Case* rule, const std::string& path);
  void check_relations(const Schema& schema, const Case* rule, const std::string& path);
  void check_list(Node& list, const Schema& schema, const std::string& path);
  void check_text(const Node& node, const Schema& schema, const std::string& path);

  std::string allowed(const Schema& schema) const;

  const KnownNames* names_;
  Values* values_;
  Findings* findings_;
};

// The case of the schema that the map's own values choose; null: none.
const Case* case_of(const Node& map, const Schema& schema);

// The scalars (scalars.cpp): each checks a node and gives its value in base units.
std::int64_t checked_integer(const Node& node, const Schema& schema, const std::string& path);
double checked_number(const Node& node, const Schema& schema, const std::string& path);
Values::Value checked_quantity(const Node& node, const Schema& schema, const std::string& path);
bool checked_flag(const Node& node, const Schema& schema, const std::string& path);

// "" or ", did you mean 'word'?".
std::string hint(const std::string& word, const std::vector<std::string>& allowed);
std::string child_path(const std::string& path, const std::string& key);

}  // namespace tandem
