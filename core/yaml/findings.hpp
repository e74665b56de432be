// What is wrong with an input, gathered: all of it, each thing once, in the order of the files. Must not know what any
// key means.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/yaml/position.hpp"

namespace tandem {

class Findings {
 public:
  // The key of `refusal` is the path of a value, which is spoiled from here on.
  void add(const Finding& refusal);
  // The same for what is wrong beside the values: none is spoiled.
  void add_aside(const Finding& refusal);
  // What `body` refuses is added. What it has left undone after that stays undone.
  template <typename Body>
  void collect(Body&& body) {
    try {
      body();
    } catch (const Finding& refusal) {
      add(refusal);
    }
  }
  // No value of this key is known, so nothing is said of what depends on it, nor that it is missing.
  void spoil(const std::string& path) { spoiled_.insert(path); }
  // Whether the key or a part that it stands in is spoiled.
  bool is_spoiled(const std::string& path) const;
  const std::set<std::string>& spoiled() const { return spoiled_; }
  bool are_known(const std::vector<std::string>& paths) const;  // none is spoiled
  // Of this part not all is known, such as what it would derive from a profile that is not there: it misses nothing.
  void leave_open(const std::string& path) { open_.insert(path); }
  bool is_open(const std::string& path) const;

  bool empty() const { return refusals_.empty(); }
  const std::set<std::string>& paths() const { return paths_; }  // of the values that were refused
  // Throws ConfigError with a line for each, unless there is none.
  void raise() const;

 private:
  std::vector<Finding> refusals_;
  std::set<std::string> lines_;  // of them
  std::set<std::string> paths_, spoiled_, open_;
};

}  // namespace tandem
