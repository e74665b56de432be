// What a long run forgets: ops and values that are over, once a step.
#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/scheduler/scheduler.hpp"

namespace tandem {
namespace {

// Policies may still ask for what was issued a while ago.
constexpr std::int32_t kStepsKept = 2;

}  // namespace

void Scheduler::forget_what_is_over() {
  if (std::exchange(forgets_, true)) return;
  for (OpId id = 0; id < static_cast<OpId>(ops_.size()); ++id) kept_ops_.push_back(id);
  for (ValueId id = 0; id < static_cast<ValueId>(values_.size()); ++id) kept_values_.push_back(id);
}

// A value is over when nothing reads it any more and no tier has a place for it; what was issued by then, such as its
// way out of a tier, may still name it. An op is over when it has run and all that it wrote is over: the state of a
// value's producer is asked for as long as the value is there.
void Scheduler::forget_over() {
  const auto all_finished = [&](const LaneProgress& issued) {
    return std::equal(issued.begin(), issued.end(), progress_.begin(), std::less_equal<>());
  };
  for (; !passing_.empty() && all_finished(passing_.front().issued); passing_.pop_front())
    forget_values(passing_.front().values);
  const auto is_old = [&](OpId op) { return graph_.op(op).step < first_open_step_ - kStepsKept; };
  Passing passing{issued_, {}};
  std::erase_if(kept_values_, [&](ValueId value) {
    const bool over = is_old(graph_.value(value).producer) && dead(value) && residency_.is_nowhere(value);
    if (over) passing.values.push_back(value);
    return over;
  });
  if (!passing.values.empty()) passing_.push_back(std::move(passing));
  std::erase_if(kept_ops_, [&](OpId op) {
    const OpState& state = ops_[static_cast<std::size_t>(op)];
    const bool over = is_old(op) && state.issued && state.running == 0 && state.kept_writes == 0;
    if (over) {
      ops_.forget(static_cast<std::size_t>(op), {.issued = true});
      graph_.forget(op);
    }
    return over;
  });
}

void Scheduler::forget_values(const std::vector<ValueId>& values) {
  for (ValueId value : values) {
    OpState& producer = ops_[static_cast<std::size_t>(graph_.value(value).producer)];
    CHECK(producer.kept_writes > 0, graph_.value_name(value), "is forgotten twice");
    --producer.kept_writes;
    residency_.forget(value);
    values_.forget(static_cast<std::size_t>(value), {.forgotten = true});
    graph_.forget_value(value);
  }
}

}  // namespace tandem
