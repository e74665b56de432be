// Turns plans into training steps: says in which order the parts of a step come, and when transforms are told of it.
// Must not know what the network computes, what the parts add, nor policies or machines.
#pragma once

#include <map>
#include <memory>
#include <string>

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
#include "core/step/sizes.hpp"
#include "core/step/update.hpp"

namespace tandem {

class TrainingSource final : public StepSource {
 public:
  // `rewrites` in the order in which they apply.
  TrainingSource(TrainingPlan plan, const Scenario& scenario, const Rewrites& rewrites = {}, Rank rank = 0);
  // Steps of several sizes. What recomputes is chosen by the first step's.
  TrainingSource(StepSizes sizes, const Scenario& scenario, const Rewrites& rewrites = {}, Rank rank = 0);
  void prologue(Graph& graph) override { begin(graph); }
  bool takes_over() const override { return true; }
  void take_over(Graph& graph, std::int32_t step) override;
  void leave(Graph& graph) override { tell(&StepTransform::end, graph); }
  bool append_step(Graph& graph, std::int64_t result) override;
  // Ranks that save together do so after the same steps, which no one of them is asked for.
  bool saves() const override { return context_.options.saves && context_.options.saving_group.size == 1; }
  void append_save(Graph& graph) override { saves_.save_last(graph); }

 private:
  // What a micro-batch in flight has of its own.
  struct MicroBatch {
    MicroBatch(StepContext& context, const std::string& prefix)
        : batch(context, prefix), passes(context, batch, prefix) {}
    BatchPart batch;
    PassesPart passes;
  };
  // What goes by a step's sizes; made when the first step has them.
  struct Sized {
    Sized(StepContext& context, const TrainingPlan& plan_of_it, const std::string& prefix);
    const TrainingPlan& plan;
    std::vector<std::unique_ptr<MicroBatch>> micro_batches;  // as many as there are at once
    std::vector<WorkId> keeps;                               // of BatchSpec::kept
  };
  // The plan with those sizes, rewritten once the transforms are there.
  TrainingPlan& plan_of(std::int64_t sizes);
  void use_sizes(Graph& graph, std::int64_t sizes);
  void use_sizes_of_step(Graph& graph) { use_sizes(graph, sizes_.of_step(context_.training_step())); }
  void begin(Graph& graph);
  void add_stage(Graph& graph, std::size_t index);
  void load_stage(Graph& graph, std::size_t index);
  void train(Graph& graph);
  void take(Graph& graph, const Turn& turn, bool loads);
  void go_backward(Graph& graph, const Turn& turn, PassesPart& passes);
  MicroBatch& micro_batch_in_hand() {
    return *now_->micro_batches[static_cast<std::size_t>(context_.micro_batch) % now_->micro_batches.size()];
  }
  void keep(Graph& graph, const Turn& turn);
  void reduce(Graph& graph, std::size_t index);
  void update(Graph& graph);
  void update(Graph& graph, std::size_t index);
  void evaluate(Graph& graph);
  template <typename Hook, typename... Arguments>
  void tell(Hook hook, Arguments&&... arguments) {
    for (const auto& transform : context_.transforms) (transform.get()->*hook)(arguments...);
  }

  StepSizes sizes_;
  std::map<std::int64_t, TrainingPlan> plans_;
  StepContext context_;
  std::map<std::int64_t, std::unique_ptr<Sized>> sized_;
  Sized* now_ = nullptr;  // of the step in hand
  BucketsPart buckets_{context_};
  ControlPart control_{context_};
  UpdatePart update_{context_};
  SavesPart saves_{context_, buckets_};
};

}  // namespace tandem
