// A condition on named values, as in `workload.batch * workload.sequence <= 16384 and policy != "resident"`. Must not
// know what names stand for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/yaml/position.hpp"

namespace tandem {

// Quantities are numbers in bytes, seconds and counts.
using Operand = std::variant<bool, double, std::string>;

// "16GiB" and "8" are numbers, "true" and "false" truths, all else is a text.
Operand operand_of(const std::string& word);

// or, and, not; == != < <= > >=, also in chains (1 <= x < 8); + - * /; numbers with units; texts in quotes; names of
// letters, digits, '_' and '.'; parentheses.
class Expression {
 public:
  // Throws Finding, at `at`, for what is no expression.
  Expression(const std::string& text, const Position& at);

  const std::string& text() const { return text_; }
  const Position& at() const { return at_; }
  const std::vector<std::string>& names() const { return names_; }  // each once, in order

  using Lookup = std::function<Operand(const std::string& name)>;
  // Throws Finding where an operand is of the wrong kind, and what `lookup` throws.
  bool holds(const Lookup& lookup) const;

  using Part = std::function<Operand(const Lookup&)>;

 private:
  std::string text_;
  Position at_;
  std::vector<std::string> names_;
  Part root_;
};

}  // namespace tandem
