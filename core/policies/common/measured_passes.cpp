#include "core/policies/common/measured_passes.hpp"

#include <algorithm>
#include <iterator>

namespace tandem {
namespace {

bool is_pass(const Op& op) {
  return op.phase == Phase::Forward || op.phase == Phase::Backward || op.phase == Phase::Recompute;
}

}  // namespace

void MeasuredPasses::follow(const View& view) {
  const Graph& graph = view.graph();
  for (seen_ = std::max(seen_, graph.era().first_op); seen_ < graph.op_count(); ++seen_)
    if (const Op& op = graph.op(seen_); op.engine == engine_ && op.step != kNone && is_pass(op))
      to_come_.push_back(seen_);
  for (; !to_come_.empty() && view.finished(to_come_.front()); to_come_.pop_front()) finish(view, to_come_.front());
}

// A step's first op may have waited for parameters and batches: time runs from its end.
void MeasuredPasses::finish(const View& view, OpId id) {
  const Op& op = view.graph().op(id);
  end_ns_ = view.observed().ns;
  if (op.step == step_) {
    estimated_ns_ += view.estimate().run_ns(view.graph(), op.work, engine_);
    const auto next = std::next(to_come_.begin());
    if (next == to_come_.end() || view.graph().op(*next).step != step_) end_step();
    return;
  }
  step_ = op.step;
  begin_ns_ = end_ns_;
  estimated_ns_ = 0;
}

// Half of what it was, as steps differ; and no step counts for more than four times that, or less than a quarter.
void MeasuredPasses::end_step() {
  constexpr double kMost = 4;
  if (estimated_ns_ <= 0) return;
  const double ratio = static_cast<double>(end_ns_ - begin_ns_) / static_cast<double>(estimated_ns_);
  const double before = over_estimate_.value_or(1);
  over_estimate_ = (before + std::clamp(ratio, before / kMost, kMost * before)) / 2;
}

}  // namespace tandem
