#include "core/policies/common/buckets.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {

void Buckets::follow(const Graph& graph) {
  if (seen_ < graph.era().first_op) {  // a policy that takes over
    CHECK(steps_.empty(), "buckets are one policy's", seen_, graph.era().first_op);
    seen_ = graph.era().first_op;
    begins_with_ = first_step_ = graph.era().first_step;
  }
  for (; seen_ < graph.op_count(); ++seen_) {
    const Op& op = graph.op(seen_);
    if (op.phase == Phase::Forward) norms_.clear();
    if (op.phase == Phase::Reduce && op.layer != kNone) norms_[op.reads.front()] = seen_;
    if (op.phase != Phase::OptimizerStep || !op.may_run_on(Engine::CpuOptimizer)) continue;
    CHECK(op.step >= 0 && op.step + 1 >= step_count(), "steps come in order", graph.op_name(seen_), step_count());
    steps_.resize(std::max(steps_.size(), static_cast<std::size_t>(op.step - first_step_) + 1));
    for (; steps_.size() > kStepsKept; ++first_step_) steps_.pop_front();
    auto& buckets = steps_[static_cast<std::size_t>(op.step - first_step_)];
    Bucket bucket;
    bucket.step = op.step;
    bucket.index = static_cast<std::int32_t>(buckets.size());
    bucket.optimizer = seen_;
    for (ValueId read : op.reads) {
      if (graph.tensor_of(read).role == Role::Gradient) bucket.gradient = read;
      if (graph.tensor_of(read).role == Role::Parameter) bucket.reads_parameter = true;
    }
    for (const Write& write : op.writes)
      if (graph.tensor_of(write.value).role != Role::OptimizerState) {
        bucket.parameter = write.value;
        bucket.old_parameter = write.reuses;
      }
    if (const auto norm = norms_.find(bucket.gradient); norm != norms_.end()) bucket.gradient_norm = norm->second;
    CHECK(bucket.gradient != kNone && bucket.parameter != kNone, graph.op_name(seen_), "updates nothing by nothing");
    // Policies take a bucket's place for its layer.
    CHECK(bucket.index == op.layer, graph.op_name(seen_), bucket.index, op.layer);
    buckets.push_back(bucket);
  }
}

bool gradient_may_leave(const View& view, const Bucket& bucket) {
  return view.issued(view.graph().value(bucket.gradient).producer) &&
         (bucket.gradient_norm == kNone || view.issued(bucket.gradient_norm));
}

bool gradient_has_left(const View& view, const Bucket& bucket) {
  return view.arrived(bucket.gradient, Tier::HostPinned) || view.arrived(bucket.gradient, Tier::Disk);
}

const std::vector<Bucket>& Buckets::step(std::int32_t step) const {
  static const std::vector<Bucket> kNoBuckets;
  return step >= first_step_ && step < step_count() ? steps_[static_cast<std::size_t>(step - first_step_)] : kNoBuckets;
}

const Bucket& Buckets::of(const Graph& graph, OpId optimizer) const {
  const auto& buckets = step(graph.op(optimizer).step);
  const auto found = std::lower_bound(buckets.begin(), buckets.end(), optimizer,
                                      [](const Bucket& bucket, OpId id) { return bucket.optimizer < id; });
  CHECK(found != buckets.end() && found->optimizer == optimizer, graph.op_name(optimizer), "updates no bucket");
  return *found;
}

}  // namespace tandem
