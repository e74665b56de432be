// Data parallel: each rank trains on batches of its own, and all take the mean of their gradients.
//
//   all_reduce          reads  the rank's gradient; writes the mean, in its place. Work::sizes: elements, ranks
#include <map>
#include <utility>
#include <vector>

#include "core/graph/kernels.hpp"
#include "core/scenario/ranks.hpp"
#include "core/step/context.hpp"
#include "core/transforms/common/entry.hpp"

namespace tandem {
namespace {

class AllReduce final : public StepTransform {
 public:
  explicit AllReduce(StepContext& context) : context_(context), stages_(context.stage_count()) {}

  void add_works(Graph& graph, std::size_t index) override {
    if (!adds(index)) return;
    const std::int64_t elements = context_.spec(index).elements;
    const DType type = context_.plan().precision;
    const auto [found, fresh] = works_.try_emplace(elements, kNone);
    if (fresh)
      found->second = graph.add_work({"all_reduce",
                                      type,
                                      context_.options.collective_sizes(elements),
                                      {memory_kernel(2 * elements * size_of(type))}});
    stages_[index] = {graph.intern(context_.spec(index).name + ".all_reduce"), found->second};
  }

  void reduce(Graph& graph, std::size_t index) override {
    if (!adds(index)) return;
    StepStage& stage = context_.stages[index];
    Op op = context_.collective(graph, stages_[index].label, stages_[index].work, Phase::Reduce, index);
    op.reads.push_back(stage.gradient_value);
    const ValueId local = stage.gradient_value;
    stage.gradient_value = graph.new_version(stage.gradient);
    op.writes.push_back({stage.gradient_value, local});
    graph.append(std::move(op));
  }

 private:
  struct Stage {
    std::int32_t label = kNone;
    WorkId work = kNone;
  };
  // Experts' are not those of all ranks (expert/expert.cpp).
  bool adds(std::size_t index) const { return context_.spec(index).gradients != GradientRanks::Expert; }
  StepContext& context_;
  std::vector<Stage> stages_;
  std::map<std::int64_t, WorkId> works_;  // by elements
};

class DataParallel final : public Rewrite {
 public:
  std::string_view name() const override { return "data"; }
  Order order() const override { return Order::Ranks; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<AllReduce>(context);
  }
};

std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites&) {
  const WorkloadOptions& w = scenario.workload;
  const bool adds_up = w.devices * sequence_ranks(scenario) > 1 && server_count(scenario) == 0;
  return adds_up && w.partition == "none" ? std::make_shared<DataParallel>() : nullptr;
}

}  // namespace
}  // namespace tandem

TANDEM_TRANSFORM(data, of_scenario,
                 "Data parallel: ranks with batches of their own, and an all-reduce of the gradients",
                 "workload.devices: N")
