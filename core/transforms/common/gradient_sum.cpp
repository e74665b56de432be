#include "core/transforms/common/gradient_sum.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/kernels.hpp"
#include "core/step/context.hpp"

namespace tandem {
namespace {

class GradientSum final : public StepTransform {
 public:
  GradientSum(StepContext& context, GradientRanks of)
      : context_(context),
        of_(of),
        group_(of == GradientRanks::Tensor ? context.options.tensor_group : context.options.same_experts_group),
        on_host_(of == GradientRanks::Tensor ? context.options.tensor_on_host : context.options.same_experts_on_host),
        stages_(context.stage_count()) {}

  void add_works(Graph& graph, std::size_t index) override {
    if (!adds(index)) return;
    const std::int64_t elements = context_.elements_of_part(index);
    const DType type = context_.plan().precision;
    const auto [found, fresh] = works_.try_emplace(elements, kNone);
    if (fresh) {
      std::vector<std::int64_t> sizes{elements, group_.size};
      if (on_host_ > 0) sizes.push_back(on_host_);
      const char* body = of_ == GradientRanks::Tensor ? "all_reduce_sum" : "all_reduce";
      found->second = graph.add_work({body, type, std::move(sizes), {memory_kernel(2 * elements * size_of(type))}});
    }
    const char* label = of_ == GradientRanks::Tensor ? ".tokens_all_reduce" : ".experts_all_reduce";
    stages_[index] = {graph.intern(context_.spec(index).name + label), found->second};
  }

  void reduce(Graph& graph, std::size_t index) override {
    if (!adds(index)) return;
    StepStage& stage = context_.stages[index];
    Op op = context_.collective(graph, stages_[index].label, stages_[index].work, Phase::Reduce, index, group_);
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
  bool adds(std::size_t index) const { return context_.spec(index).gradients == of_ && group_.size > 1; }

  StepContext& context_;
  const GradientRanks of_;
  const RankGroup& group_;
  const std::int64_t on_host_;
  std::vector<Stage> stages_;
  std::map<std::int64_t, WorkId> works_;  // by elements
};

class AddGradients final : public Rewrite {
 public:
  AddGradients(std::string_view name, GradientRanks of) : name_(name), of_(of) {}
  std::string_view name() const override { return name_; }
  Order order() const override { return Order::Ranks; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<GradientSum>(context, of_);
  }

 private:
  std::string_view name_;
  GradientRanks of_;
};

}  // namespace

std::shared_ptr<const Rewrite> gradient_sum(std::string_view name, GradientRanks of) {
  return std::make_shared<AddGradients>(name, of);
}

}  // namespace tandem
