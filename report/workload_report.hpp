// What `tandem analyze` tells of a workload: each kind of module with its costs, its place and why, where modalities
// meet, and the input. As text, JSON and a page. Must not know how runs are made.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/access_pattern.hpp"
#include "analysis/module_costs.hpp"
#include "analysis/module_shares.hpp"
#include "report/origin.hpp"
#include "report/simulated_row.hpp"

namespace tandem {

// A simulation with other modules on the CPU.
struct PlacementTrial {
  std::string modules;  // that change sides, in words of policy.cpu_modules
  bool to_cpu = true;   // else to the device
  std::string on_cpu;   // all that are on the CPU then
  std::optional<double> step_s;
  std::int64_t device_bytes = 0;  // the most that it held
  bool does_not_fit = false;
  std::string why_not;  // where there is no step
};

struct GroupReport {
  ModuleGroup group;
  std::string words;  // of all of its modules
  AccessBytes access;
  GroupCosts costs;
  GroupShare share;          // zeros where there is no run
  double independent_s = 0;  // of the device's work that could run at once
  std::size_t on_cpu = 0;    // modules that the scenario has there
  std::vector<PlacementTrial> trials;
  std::size_t suggested_on_cpu = 0;  // modules
  bool alone_faster = false;         // its trial was, but others together were more so
  bool all_on_cpu() const { return on_cpu == group.modules.size(); }
};

// What a processor does at most.
struct Roof {
  double flops_per_s = 0, bytes_per_s = 0;
};

struct WorkloadReport {
  std::string scenario, machine, policy, family, precision;
  Origin origin = {};
  bool gpu = false;
  std::vector<std::string> settings;  // --set arguments of all simulations
  Roof device, cpu;
  std::int64_t device_capacity_bytes = 0;
  std::int64_t device_peak_bytes = 0;  // of the run
  std::optional<double> step_s;        // none: the scenario does not fit, and `why_not` says where
  std::string why_not;
  double compute_s = 0;  // of a step
  std::vector<GroupReport> groups;
  GroupShare others;  // of no module
  std::vector<Meeting> meetings;
  InputTimes input;
  std::optional<PlacementTrial> best;  // that is faster than the scenario, or fits where that does not

  // What the device does not compute in a step: the most that a place on the CPU could save beside its own time.
  double waits_s() const { return step_s ? std::max(0.0, *step_s - compute_s) : 0; }
  const char* device_word() const { return gpu ? "GPU" : "device"; }
};

// Of a step: what saves less is not worth a change of the scenario, as of a policy in an explanation.
inline constexpr double kWorthIt = 0.01;

// One sentence: which modules to put where, and what it brings.
std::string answer(const WorkloadReport& report);
// Where a group should be: "CPU", "GPU", "CPU 4/12"; and why, with figures.
std::string place_of(const WorkloadReport& report, const GroupReport& group);
std::string reason_of(const WorkloadReport& report, const GroupReport& group);
// "vision_block x12"; "down_attention0_0 +4" of modules whose names are not in a row.
std::string title_of(const GroupReport& group);
std::string sentence_of(const WorkloadReport& report, const Meeting& meeting);
std::string input_sentence(const WorkloadReport& report);

// Of a profile whose device is no GPU.
std::string stand_in_remark();

std::string workload_text(const WorkloadReport& report, std::size_t columns);
nlohmann::ordered_json workload_json(const WorkloadReport& report);
std::string workload_html(const WorkloadReport& report);

}  // namespace tandem
