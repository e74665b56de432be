// The order in which workers' gradients come to asynchronous parameter servers. Must not know what servers do with
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem {

// parallel.staleness: by how many steps a worker may be ahead of the slowest; 0: servers wait for all.
std::int64_t staleness_bound(const Scenario& scenario);

// Workers that such servers, and so all others, can go on without: all but the one that reports.
std::vector<Rank> spared_workers(const Scenario& scenario);

struct Arrival {
  Rank worker = 0;
  std::int64_t staleness = 0;  // updates that were made of others' gradients since the worker got its parameters
};

struct ArrivalShape {
  std::vector<double> step_times;  // of each worker, relative
  std::int64_t steps = 0;          // of each worker
  std::int64_t ahead = 1;          // staleness_bound()
};
// Of a scenario's own run: a rank of truth.stragglers is as many times as slow.
ArrivalShape arrival_shape(const Scenario& scenario);

// Stale synchronous parallel (Ho et al., NIPS 2013): once a gradient is taken, its worker is at most `ahead` steps
// before the slowest, else it waits until that one has come. Which gradient comes first would depend on the run; here
// it is said beforehand, as if workers took the given times and messages none, of two at one time the lower rank's
// first: so all servers make the same updates in the same order, and a run repeats. An update's staleness is at most
// twice `ahead` for each other worker.
class Arrivals {
 public:
  explicit Arrivals(ArrivalShape shape);
  // Called as many times as there are steps of all workers together, at most.
  Arrival next();

 private:
  struct Worker {
    double ready = 0;  // when its next gradient is made
    std::int64_t done = 0, last = -1;
  };
  bool may_come(const Worker& worker) const;

  ArrivalShape shape_;
  std::vector<Worker> workers_;
  double now_ = 0;
  std::int64_t slowest_ = 0, count_ = 0;  // steps of the slowest; arrivals so far
};

}  // namespace tandem
