// A sweep's conditions on its combinations: what their names mean, and which hold. Must not know how scenarios are run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "report/sweep_table.hpp"
#include "sweep/plan.hpp"

namespace tandem {

class Conditions {
 public:
  // Throws ConfigError for a name that is no key that varies or that the base has, and no figure of a result.
  Conditions(const SweepPlan& plan, const Scenario& base);

  // Of those on keys alone: false leaves the combination out. Throws Finding where one has no meaning for it.
  bool allows(std::size_t number) const;
  // Of those on results, too: the first that does not hold, with what its figures are; none: all do.
  std::optional<std::string> broken_by(const SweepRow& row) const;

 private:
  Operand value_of(const std::string& name, std::size_t number, const Position& at) const;

  const SweepPlan& plan_;
  Node base_;
  std::vector<const Expression*> on_keys_, on_results_;
};

}  // namespace tandem
