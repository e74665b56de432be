// What `tandem plan` is asked: a scenario of which some keys are fixed and the others are open. Must not know which
// keys are searched, or how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {

struct PlanFlags {
  std::string file;                                                    // a scenario; "": the model alone
  std::string model, machine, host_memory, device_memory, disk_space;  // "": as the file says
  std::vector<std::string> overrides;                                  // --set arguments, in order
  std::vector<std::string> free;                                       // keys of the file that are open nevertheless
  std::int64_t samples = 0;                                            // of a training step, however cut; 0: open
  std::int64_t devices = 0;                                            // 0: as the file says
  std::string devices_flag = "--devices";                              // what said so
  std::string price;                                                   // of a device an hour; "": as the profile says
  std::optional<std::uint64_t> seed;
  bool exact = false;  // nothing that changes what is computed
};

// Keys that a question may leave open: what fixed() is asked of.
class Question {
 public:
  // Throws ConfigError for what is wrong with the file or the flags, by the name that the person wrote.
  explicit Question(const PlanFlags& flags);

  // "policy" or "workload.batch": whether the file or a flag says it.
  bool fixed(const std::string& key) const;
  // With so much added, as --set arguments. Throws ConfigError where a rule of the keys does not allow it; family and
  // policy have their say when they are made.
  Scenario with(const std::vector<std::string>& settings) const;
  // The same as the text of a scenario, which a folder elsewhere may hold. What was not written stays out of it.
  std::string text_with(const std::vector<std::string>& settings) const;
  // With defaults for all that is open, and a policy that all families have.
  const Scenario& base() const { return base_; }
  const PlanFlags& flags() const { return flags_; }

 private:
  PlanFlags flags_;
  Node root_;
  std::string text_, name_, folder_;  // of root_
  Scenario base_;
};

}  // namespace tandem
