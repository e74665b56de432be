#include "core/transforms/servers/arrivals.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/scenario/ranks.hpp"

namespace tandem {

std::int64_t staleness_bound(const Scenario& scenario) { return scenario.workload.parallel.integer_or("staleness", 0); }

std::vector<Rank> spared_workers(const Scenario& scenario) {
  std::vector<Rank> spared;
  if (staleness_bound(scenario) == 0) return spared;
  for (Rank worker = 0; worker < scenario.workload.devices; ++worker)
    if (worker != leading_rank(scenario)) spared.push_back(worker);
  return spared;
}

ArrivalShape arrival_shape(const Scenario& scenario) {
  ArrivalShape shape{std::vector<double>(static_cast<std::size_t>(scenario.workload.devices), 1),
                     scenario.steps - scenario.first_step, staleness_bound(scenario)};
  for (const Straggler& straggler : scenario.truth.stragglers)
    if (straggler.rank < scenario.workload.devices)
      shape.step_times[static_cast<std::size_t>(straggler.rank)] = straggler.factor;
  return shape;
}

Arrivals::Arrivals(ArrivalShape shape) : shape_(std::move(shape)) {
  CHECK(!shape_.step_times.empty() && shape_.ahead > 0, shape_.step_times.size(), shape_.ahead);
  for (const double time : shape_.step_times) workers_.push_back({.ready = time});
}

bool Arrivals::may_come(const Worker& worker) const {
  return worker.done < shape_.steps && worker.done + 1 - slowest_ <= shape_.ahead;
}

Arrival Arrivals::next() {
  Worker* first = nullptr;
  for (Worker& worker : workers_)
    if (may_come(worker) && (first == nullptr || worker.ready < first->ready)) first = &worker;
  CHECK(first != nullptr, "all gradients have come", count_);
  const auto own = static_cast<std::size_t>(first - workers_.data());
  const Arrival arrival{static_cast<Rank>(own), count_ - first->last - 1};
  now_ = std::max(now_, first->ready);
  first->ready = now_ + shape_.step_times[own];
  ++first->done;
  first->last = count_++;
  const auto fewer = [](const Worker& a, const Worker& b) { return a.done < b.done; };
  slowest_ = std::min_element(workers_.begin(), workers_.end(), fewer)->done;
  return arrival;
}

}  // namespace tandem
