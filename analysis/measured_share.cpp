#include "analysis/measured_share.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/machine/cost_model.hpp"

namespace tandem {
namespace {

class Sums {
 public:
  explicit Sums(const HardwareProfile& machine) : cost_(machine) {}

  void add(const RankTimeline& rank, const TimedCommand& timed) {
    if (timed.command->kind != CommandKind::Run) return;
    const auto ns = static_cast<double>(timed.finished.ns - timed.started.ns);
    const WorkId work = rank.graph->op(timed.command->op).work;
    all_ns_ += ns;
    if (const MeasuredOp* op = cost_.measured(*rank.graph, work, timed.command->lane.kind())) {
      measured_ns_ += ns;
      rows_.insert(op);
    } else {
      modelled_ns_[rank.graph->work(work).body] += ns;
    }
  }

  MeasuredShare sum() const {
    MeasuredShare out;
    out.any = true;
    out.measured = static_cast<int>(rows_.size());
    if (all_ns_ <= 0) return out;
    out.share = measured_ns_ / all_ns_;
    for (const auto& [body, ns] : modelled_ns_) out.modelled.emplace_back(body, ns / all_ns_);
    std::stable_sort(out.modelled.begin(), out.modelled.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return out;
  }

 private:
  const CostModel cost_;
  double all_ns_ = 0, measured_ns_ = 0;
  std::set<const MeasuredOp*> rows_;
  std::map<std::string, double> modelled_ns_;
};

}  // namespace

MeasuredShare measured_share(const Timeline& timeline, const Steps& steps, const Scenario& scenario) {
  if (!scenario.machine.ops) return {};
  Sums sums(scenario.machine);
  for (const RankTimeline& rank : timeline.ranks)
    for (const auto& lane : rank.lanes)
      for (const CommandId id : lane)
        if (is_measured_on(rank.at(id).command->lane.kind()) && steps.counts(rank.at(id).finished.ns))
          sums.add(rank, rank.at(id));
  return sums.sum();
}

}  // namespace tandem
