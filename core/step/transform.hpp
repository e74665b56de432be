// How a rewrite takes part in building steps: it is told what comes next, and adds its tensors and ops there. Must not
// know which rewrites there are.
#pragma once

#include <cstddef>

#include "core/graph/graph.hpp"
#include "core/graph/rewrite.hpp"

namespace tandem {

class ControlPart;
class PassesPart;
struct TrainingPlan;

// In the order in which they are called; `index` is a stage. Transforms are told in the order of their rewrites.
class StepTransform {
 public:
  virtual ~StepTransform() = default;
  // A plan, before anything is made of it: of a source whose sizes change, each of its plans.
  virtual void rewrite(TrainingPlan&) {}

  // The prologue. Tensors and works, before those of stages.
  virtual void begin(Graph&) {}
  // Tensors of a stage that is trained, after its gradient.
  virtual void add_gradient(Graph&, std::size_t /*index*/) {}
  // Works that go by the size of its bucket, after its update's.
  virtual void add_works(Graph&, std::size_t /*index*/) {}
  // After all stages.
  virtual void add(Graph&) {}
  // The stage's first values were loaded, a trained one's: not those of a checkpoint, which has all states.
  virtual void load(Graph&, std::size_t /*index*/) {}

  // A pass over the stages, forward, of training or an evaluation, or backward: it begins where a forward turns back.
  virtual void begin_pass(Phase) {}
  virtual void turn_back() {}
  // An op comes next that reads the stage's parameter and the buckets that it shares.
  virtual void before_use(Graph&, std::size_t /*index*/, Phase) {}
  // Its forward was appended, which saved what its backward reads (PassesPart::saved).
  virtual void after_forward(Graph&, std::size_t /*index*/, PassesPart&) {}
  virtual void before_backward(Graph&, std::size_t /*index*/, PassesPart&) {}
  // Its gradient of this micro-batch was written (StepStage::gradient_value).
  virtual void after_backward(Graph&, std::size_t /*index*/) {}
  // The gradient of the last micro-batch is in: before the norms of StepContext::final_gradients are taken, and after.
  virtual void reduce(Graph&, std::size_t /*index*/) {}
  virtual void finish_gradient(Graph&, std::size_t /*index*/) {}

  // All gradients are final. Where a step is clipped or its loss scaled: before their norms are summed; and then.
  virtual void before_control(Graph&, ControlPart&) {}
  virtual void before_updates(Graph&) {}
  // True: this was the stage's update.
  virtual bool update(Graph&, std::size_t /*index*/) { return false; }
  // No step comes after this one.
  virtual void end(Graph&) {}
};

}  // namespace tandem
