// What a sweep is: a base scenario, the keys that vary with their values, and conditions on which combinations count.
// Must not know how scenarios are run, nor what a key means but the policy's name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/yaml/yaml_tree.hpp"
#include "sweep/expression.hpp"

namespace tandem {

struct Setting {
  std::string key;
  Node value;
};

struct AxisValue {
  std::string label;
  std::vector<Setting> settings;  // several where keys change together
};

struct Axis {
  std::string name;  // the key, or a name of the user's for keys that change together
  Position at;
  std::vector<AxisValue> values;
};

// A key whose largest value that fits is looked for: 0 <= low <= high. Key "": none.
struct KeyRange {
  std::string key;
  std::int64_t low = 0, high = 0;
};

struct SweepPlan {
  std::string base;        // as load_scenario() takes it
  std::vector<Axis> axes;  // the last varies fastest
  KeyRange largest;
  std::vector<Expression> constraints;
  std::vector<std::string> figures;  // names of policy_figures() in reports, the one that rows are ranked by first

  std::size_t count() const;  // of all combinations
  // Of combination `number`, one an axis.
  std::vector<const AxisValue*> values_of(std::size_t number) const;
  // --set arguments of a combination, in an order in which none undoes another. The base's own policy keeps its
  // options; others have their defaults.
  std::vector<std::string> settings_of(std::size_t number, const std::string& own_policy) const;
};

inline constexpr std::size_t kMostPoints = 1'000'000;

// Values of a key: each item, or a bare name for the policy.
Axis axis_of(const std::string& key, const std::vector<Node>& values, const Position& at);

// "LOW..HIGH", two whole numbers up to 10^15. Throws Finding for `key`.
KeyRange range_of(const std::string& key, const std::string& text, const Position& at);

}  // namespace tandem
