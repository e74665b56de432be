// Times of whole ops: designed networks trained step by step on the executor, each op timed by its event.
// Must not know how the times are fitted.
#pragma once

#include <string>
#include <vector>

#include "calibration/design.hpp"
#include "calibration/statistics.hpp"
#include "calibration/workbench.hpp"
#include "core/graph/graph.hpp"

namespace tandem {

struct OpTime {
  Work work;
  Engine engine = Engine::Compute;
  std::string network;  // "gpt hidden 256, batch 4 x 128"
  bool held_out = false;
  Summary ns;
  std::int64_t count = 1;  // ops of this work in a step
  double launch_ns =
      0;  // what the submitting thread takes to launch its kernels after another such op's; 0 without a device
  double late_ns = 0;  // what it takes where nothing ran before it while its kernels were launched
  // The same where its launches were recorded, of those that can be: 0 else.
  struct {
    double ns = 0, launch_ns = 0, record_ns = 0;
  } repeated;
};

// Runs the trial's step on the compute lane, on a device once more with launches recorded, then its optimizer ops on
// the CPU's optimizer lane (if asked for), each at least `least_passes` times and all for about `budget_ns`. One entry
// for each work and engine. Throws DeviceError if an op fails.
std::vector<OpTime> time_ops(const Trial& trial, int least_passes, double budget_ns, const BenchDevice& device = {});

// Those of the ops that `engine` can run, in order, each pass after a first that is not counted, without recorded
// launches: of modules that the CPU computes.
std::vector<OpTime> time_ops_on(Engine engine, const Trial& trial, int least_passes, double budget_ns,
                                const BenchDevice& device);

// The same of what a trial's update has that plain training lacks, on the lanes that it may run on, after one run of
// all else, so that there are gradients. Nothing of it has recorded launches.
std::vector<OpTime> time_update(const Trial& trial, int least_passes, double budget_ns, const BenchDevice& device = {});

// What the ops read as a step leaves it on the device, in the host's arena: for optimizer steps on the CPU.
void copy_operands_to_host(Workbench& bench, const std::vector<OpId>& ops);

// "gpt hidden 256, batch 4 x 128": a network for people.
std::string network_name(const Scenario& scenario);

}  // namespace tandem
