// Turns a plan into training steps: says in which order the parts of a step come, and when transforms are told of it.
// Must not know what the network computes, what the parts add, nor policies or machines.
#pragma once

#include "core/graph/graph.hpp"
#include "core/graph/rewrite.hpp"
#include "core/scenario/scenario.hpp"
#include "core/step/batch.hpp"
#include "core/step/buckets.hpp"
#include "core/step/context.hpp"
#include "core/step/control.hpp"
#include "core/step/passes.hpp"
#include "core/step/plan.hpp"
#include "core/step/saves.hpp"
#include "core/step/update.hpp"

namespace tandem {

class TrainingSource final : public StepSource {
 public:
  // `rewrites` in the order in which they apply.
  TrainingSource(TrainingPlan plan, const Scenario& scenario, const Rewrites& rewrites = {}, Rank rank = 0);
  void prologue(Graph& graph) override;
  bool append_step(Graph& graph, std::int64_t result) override;
  bool saves() const override { return context_.options.saves; }
  void append_save(Graph& graph) override { saves_.save_last(graph); }

 private:
  void add_stage(Graph& graph, std::size_t index);
  void load_stage(Graph& graph, std::size_t index);
  void train(Graph& graph);
  void reduce(Graph& graph, std::size_t index);
  void update(Graph& graph);
  void update(Graph& graph, std::size_t index);
  void evaluate(Graph& graph);
  template <typename Hook, typename... Arguments>
  void tell(Hook hook, Arguments&&... arguments) {
    for (const auto& transform : context_.transforms) (transform.get()->*hook)(arguments...);
  }

  StepContext context_;
  BatchPart batch_{context_};
  BucketsPart buckets_{context_};
  PassesPart passes_{context_, batch_};
  ControlPart control_{context_};
  UpdatePart update_{context_};
  SavesPart saves_{context_, buckets_};
  bool begun_ = false;
};

}  // namespace tandem
