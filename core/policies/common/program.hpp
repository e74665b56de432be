// The skeleton that most policies share: keep the compute lane fed in graph order, a bounded way ahead.
#pragma once

#include <deque>
#include <optional>

#include "core/base/check.hpp"
#include "core/scheduler/policy.hpp"
#include "core/transforms/recompute/recompute.hpp"

namespace tandem {

// Commands kept queued on the compute lane: enough that a round trip to the host never starves it, few enough that
// decisions are taken late, with knowledge.
inline constexpr int kComputeAhead = 4;

// Issues the compute program until the lane has `kComputeAhead` commands queued, the program ends, the next op is not
// ready, or `may_run()` does not hold before it. Calls `issued(op)` after each op. True if it stopped because the next
// op waits for an unissued optimizer step or the program has ended.
template <typename G, typename F>
bool feed_compute(const View& view, Decisions& decisions, G&& may_run, F&& issued) {
  while (view.computing() < kComputeAhead && may_run()) {
    const auto program = view.compute_program();
    if (program.empty()) return true;
    const OpId next = program.front();
    if (decisions.run(next) != Reply::Issued) return true;
    CHECK(view.issued(next), "the program stands still at", view.graph().op_name(next));
    issued(next);
  }
  return false;
}

template <typename F>
bool feed_compute(const View& view, Decisions& decisions, F&& issued) {
  return feed_compute(
      view, decisions, [] { return true; }, issued);
}

// True where the program's next op is of a step whose updates have begun, and waits for none of them: a stage of a
// pipeline has gradients to send that others wait for. Passes over held-out data read what is updated.
bool step_goes_on(const View& view, std::int32_t updated_step);

// Whether a stage of a pipeline sends or receives by it: that has no layer, and takes as long as another rank lets it
// wait.
bool goes_between_stages(const View& view, OpId op);

// Runs the optimizer steps that are ready and `mine(op)`; true if there were any.
template <typename F>
bool run_ready_updates(const View& view, Decisions& decisions, Engine engine, F&& mine) {
  bool any = false;
  for (std::size_t i = 0; i < view.ready_optimizer_ops().size();) {
    const OpId op = view.ready_optimizer_ops()[i];
    if (!mine(op) || decisions.run(op, engine) != Reply::Issued) {
      ++i;
      continue;
    }
    CHECK(view.issued(op), "an update stays ready:", view.graph().op_name(op));
    any = true;
  }
  return any;
}

// Fetches the parameters that the next `ops` compute ops read, in order, while there is room.
void prefetch_parameters(const View& view, Decisions& decisions, std::size_t ops);

// Fetches what the rest of a step reads of its batches as soon as the step before it begins: little, but it would wait
// behind all that a policy queues from then on.
class BatchesAhead {
 public:
  void fetch(const View& view, Decisions& decisions);

 private:
  struct Read {
    OpId op = kNone;
    ValueId value = kNone;
  };
  void follow(const Graph& graph);
  bool fetch_step(const View& view, Decisions& decisions);

  std::int32_t next_ = 0, last_step_ = -1;
  OpId seen_ = 0;
  std::deque<Read> reads_;  // of batches, by the ops of this step and later ones
};

// 16-bit parameters live on the device where all of them fit at once beside the widest op, else on the host, as
// everything else does. Decided at the first question. Where ranks divide states alone, it is whole parameters that
// live on the device; a rank's parts live on the host if updates read them.
class DeviceParameters {
 public:
  Tier home(const View& view, TensorId tensor);
  bool fit() const { return fit_; }

 private:
  bool asked_ = false, fit_ = false, parts_on_host_ = false;
};

// True where each parameter is its own master, or a half of it.
bool updates_read_parameters(const Graph& graph);

// Before a run: whether all parameters are 16 bits wide and fit beside the widest op of a step.
bool parameters_fit_on_device(const Scenario& scenario, const std::optional<BlockActivations>& activations);

// After an op that brings a parameter together: the device has all of it, so that the rank's part beside it, which the
// CPU updates on the host, is dropped.
void drop_gathered(const View& view, Decisions& decisions, OpId op);

}  // namespace tandem
