// What the steps of a run must do on a machine whatever the policy: seconds of each resource, as functions of the share
// of each kind of optimizer step that runs on the device. Input of the lower bound's linear program (lower_bound.hpp).
// Must not know schedules. docs/lower_bounds.md derives each term.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/steady_state.hpp"
#include "core/graph/graph.hpp"
#include "core/machine/cost_model.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

enum class Resource : std::uint8_t {
  Compute,
  H2D,
  D2H,
  Pcie,
  Dram,
  CpuOptimizer,
  CpuCompute,
  DiskRead,
  DiskWrite,
  Collective,
  Loader,
};
inline constexpr int kResourceCount = 11;
constexpr std::string_view name_of(Resource resource) {
  constexpr std::string_view kNames[] = {"compute",    "h2d",           "d2h",         "pcie",
                                         "dram",       "cpu_optimizer", "cpu_compute", "disk_read",
                                         "disk_write", "collective",    "loader"};
  return kNames[static_cast<int>(resource)];
}

// constant + sum of by_share[k] * share k. A share is the part of a class's work that runs on the device, 0 to 1.
struct Linear {
  double constant = 0;
  std::vector<double> by_share;
  void add(double amount, std::size_t share);
  void add(const Linear& other, double factor);
};

// A linear part and hinges max(0, linear): convex, so that it bounds means over steps too.
struct Amount {
  Linear linear;
  std::vector<Linear> hinges;
  void add(const Amount& other, double factor = 1);
};

// The steps cannot take less than `seconds` because of `resource`.
struct Requirement {
  Resource resource;
  Amount seconds;
};

struct Demand {
  std::size_t shares = 0;
  std::vector<Requirement> requirements;
};

// The best rates of a machine: its profile's, with the scenario's truth factors.
struct BoundRates {
  double h2d_s_per_byte = 0, d2h_s_per_byte = 0, pcie_s_per_byte = 0, dram_s_per_byte = 0;
  double disk_read_s_per_byte = 0, disk_write_s_per_byte = 0;
  double h2d_latency_s = 0, d2h_latency_s = 0;
  double copy = 1;         // factor on the durations of copies
  double shared_copy = 1;  // factor on the bytes by which a copy loads PCIe and DRAM: never more than they are
  double compute = 1, optimizer = 1, other = 1;  // factors on durations; other lanes: the least of all
};
// `with_truth`: apply Scenario::truth's factors (a simulated run) or not (a measured one).
BoundRates rates_of(const Scenario& scenario, bool with_truth);

// Where optimizer states may be while no update runs.
enum class States : std::uint8_t { Anywhere, OnHost };

// Over all steps that count, of one rank of `ranks`, which share the host's memory.
Demand compulsory_demand(const Graph& graph, const SteadyState& steady, const Scenario& scenario, const CostModel& cost,
                         const BoundRates& rates, std::int64_t ranks, States states = States::Anywhere);

// Seconds of one op on an engine that runs nothing else, with the truth's factor.
double run_s(const Graph& graph, const Op& op, Engine engine, const CostModel& cost, const BoundRates& rates);

// DRAM traffic of an op on the host that takes `run_s`: what was measured alone fits the memory, whatever its profile
// says.
double dram_bytes(const Work& work, double run_s, const BoundRates& rates);

}  // namespace tandem
