// All rules by which one element is updated. A new one is a file beside this, a line of Rule and of with_rule(), and
// its optimizer's name in update_options() and among the bodies of runtime/bodies/optimizer.cpp.
#pragma once

#include "runtime/optimizer/rules/adam.hpp"
#include "runtime/optimizer/rules/lion.hpp"
#include "runtime/optimizer/rules/sgd.hpp"

namespace tandem {

// Calls work.template operator()<rule>().
template <class Work>
auto with_rule(Rule rule, const Work& work) {
  switch (rule) {
    case Rule::Lion:
      return work.template operator()<LionRule>();
    case Rule::Sgd:
      return work.template operator()<SgdRule<false>>();
    case Rule::Momentum:
      return work.template operator()<SgdRule<true>>();
    default:
      return work.template operator()<AdamRule>();
  }
}

}  // namespace tandem
