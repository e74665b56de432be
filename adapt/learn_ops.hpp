// `train --learn`: what a run tells of single ops, into a profile. Must not know how a run is made.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "adapt/op_learner.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

class LearnOps {
 public:
  // `file`: the profile that gets the ops; where it is not there, it begins as the scenario's machine. Throws
  // ConfigError for a file that is no profile or cannot be written. The scenario must outlive this object.
  LearnOps(std::string file, const Scenario& scenario);
  // Throws ConfigError unless the profile is of this machine, or names none: `other_machine` says why not, "" if it is.
  void require_machine(const std::function<std::string(const HardwareProfile&)>& other_machine) const;
  // What is to see all that crosses the seam, and hands it on to `inner`. `records` as of OpLearner::Options.
  EventLog& watch(EventLog& inner, const Graph& graph, std::function<bool(const Work&)> records);
  // Says what was learnt, unless quiet. Of a run that was too short to tell anything, the file stays as it was.
  void write(bool quiet) const;

 private:
  std::string file_;
  const Scenario& scenario_;
  HardwareProfile base_;
  std::unique_ptr<OpLearner> learner_;
};

}  // namespace tandem
