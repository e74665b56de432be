// Checked values to the structs that the rest of the program reads. Must not know YAML.
#pragma once

#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "core/yaml/findings.hpp"
#include "core/yaml/values.hpp"

namespace tandem {

// An element type by its name, which the schema has made sure of.
DType type_named(const std::string& name);
// `prefix` is "" for a profile file, "machine." inside a scenario.
HardwareProfile build_profile(const Values& values, const std::string& prefix);
// Its `ops` (measured_rows.cpp); null where there are none.
std::shared_ptr<const MeasuredOps> build_measured_ops(const Values& values, const std::string& prefix);
// Its `topology` (topology.cpp); null where there is none.
std::shared_ptr<const Topology> build_topology(const Values& values, const std::string& prefix);
// Parts of a topology that do not go together, or are missing.
void check_topology(const Values& values, const std::string& prefix, Findings& findings);
constexpr std::int64_t kMostSteps = 1'000'000'000;  // as the schema has it
// Of all devices together.
inline std::int64_t samples_of_step(const WorkloadOptions& w) { return w.batch * w.micro_batches * w.devices; }
// All but path, text and warnings. Policy options are read from `policy_options` below.
Scenario build_scenario(const Values& values);

// Rules between keys that a schema cannot say (rules.cpp): what breaks them is added to the findings. Values that are
// spoiled there break none.
void check_profile_rules(const Values& values, const std::string& prefix, Findings& findings);
// Figures that no machine has, on their own or beside each other (plausible.cpp).
void check_plausible(const Values& values, const std::string& prefix, Findings& findings);
// For messages, in the largest unit of the schema's family that leaves a number of at least 1, of powers of 10; "" for
// a number without a unit.
std::string shown_figure(double value, const std::string& family);
// Rows of `ops` that say nothing, something twice, or a spread around another number.
void check_measured_ops(const Values& values, const std::string& prefix, Findings& findings);
// Figures with a source that contradict each other, and those that a flag has made odd, in words (consistent.cpp).
void check_consistent(const Values& values, const std::string& prefix, Findings& findings);
std::vector<std::string> odd_figures(const Values& values, const std::string& prefix);
void check_scenario_rules(const Values& values, const Scenario& scenario, Findings& findings);
// What is odd but allowed, "key: text", of a machine as its profile has it (oddities.cpp).
std::vector<std::string> oddities(const Scenario& scenario);
// Makes the machine the one that a rank runs on: capped by `limits`, one of the ranks that share the host, with a rate
// for the workload's precision (limits.cpp). Capacities stay: tier_capacity_bytes has their limits.
void apply_limits(Scenario& scenario);

}  // namespace tandem
