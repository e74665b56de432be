#include "adapt/learn_ops.hpp"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "adapt/profile_ops.hpp"
#include "cli/atomic_file.hpp"
#include "cli/output_paths.hpp"
#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/run/load.hpp"

namespace tandem {
namespace {

// Limits are the scenario's, and no figure of its machine.
HardwareProfile base_of(const std::string& file, const Scenario& scenario) {
  if (std::filesystem::exists(file)) return load_profile(file);
  return scenario.whole_machine ? *scenario.whole_machine : scenario.machine;
}

}  // namespace

LearnOps::LearnOps(std::string file, const Scenario& scenario) : file_(std::move(file)), scenario_(scenario) {
  check_outputs({{"--learn", file_}}, {{"the scenario", scenario.path}});
  base_ = base_of(file_, scenario);
}

void LearnOps::require_machine(const std::function<std::string(const HardwareProfile&)>& other_machine) const {
  const std::string other = other_machine(base_);
  if (base_.fingerprint && !other.empty())
    throw ConfigError("--learn: " + base_.name + " " + other + "; allowed: a profile of this machine");
}

EventLog& LearnOps::watch(EventLog& inner, const Graph& graph, std::function<bool(const Work&)> records) {
  OpLearner::Options options;
  options.records = std::move(records);
  options.source = "tandem train --learn";
  learner_ = std::make_unique<OpLearner>(inner, graph, scenario_.machine, std::move(options));
  return *learner_;
}

void LearnOps::write(bool quiet) const {
  CHECK(learner_ != nullptr, "nothing was watched");
  const LearntOps learnt = of_all_cores(learner_->learnt(), scenario_);
  if (learnt.empty()) {
    std::fprintf(stderr,
                 "--learn: the run had no op to learn from: its first two steps and its last two do not count\n");
    return;
  }
  const std::string name = base_.path == file_ ? "" : std::filesystem::path(file_).stem().string();
  write_file(file_, with_ops(base_, with_learnt(base_.ops.get(), learnt), name));
  if (!quiet)
    std::fprintf(stderr, "learnt %zu ops from %d steps: %s\n", learnt.size(), learner_->steps(), file_.c_str());
}

}  // namespace tandem
