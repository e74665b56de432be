// A transform of a network before its passes are derived: what a scenario's keys make of what the family built. Must
// not know steps.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/network.hpp"

namespace tandem {

// Whether a name is one that a pattern means: `*` stands for any characters, `?` for one.
bool matches(const std::string& pattern, const std::string& name);

// Modules that are changed alike, and were the same one, stay the same one: `Choice` says what becomes of a module.
template <typename Choice>
class ChangedModules {
 public:
  template <typename Change>
  std::shared_ptr<const Module> of(const std::shared_ptr<const Module>& module, const Choice& choice,
                                   const Change& change) {
    std::shared_ptr<const Module>& changed = known_[{module, choice}];
    if (changed == nullptr) changed = change();
    return changed;
  }

 private:
  std::map<std::pair<std::shared_ptr<const Module>, Choice>, std::shared_ptr<const Module>> known_;
};

}  // namespace tandem
