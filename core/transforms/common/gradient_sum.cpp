// Ops beside collectives:
//   divide_gradient   reads a gradient; writes it, in its place, divided by so many. Work::sizes: elements, how many
#include "core/transforms/common/gradient_sum.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/kernels.hpp"
#include "core/step/context.hpp"
#include "core/transforms/common/division.hpp"

namespace tandem {
namespace {

class GradientSum final : public StepTransform {
 public:
  GradientSum(StepContext& context, GradientRanks of)
      : context_(context),
        of_(of),
        group_(of == GradientRanks::Tensor ? context.options.tensor_group : context.options.same_experts_group),
        stages_(context.stage_count()) {}

  void add_works(Graph& graph, std::size_t index) override {
    if (!is_mine(index)) return;
    const std::int64_t elements = context_.elements_of_part(index);
    const DType type = context_.plan().precision;
    if (of_ == GradientRanks::Expert) add_division(graph, index, elements, type);
    if (!adds()) return;
    const auto [found, fresh] = works_.try_emplace(elements, kNone);
    if (fresh) {
      std::vector<std::int64_t> sizes = sizes_of(elements);
      const char* body = of_ == GradientRanks::Tensor ? "all_reduce_sum" : "all_reduce";
      found->second = graph.add_work({body, type, std::move(sizes), {memory_kernel(2 * elements * size_of(type))}});
    }
    const char* label = of_ == GradientRanks::Tensor ? ".tokens_all_reduce" : ".experts_all_reduce";
    stages_[index].sum = {graph.intern(context_.spec(index).name + label), found->second};
  }

  void reduce(Graph& graph, std::size_t index) override {
    if (!is_mine(index)) return;
    const Stage& stage = stages_[index];
    if (of_ == GradientRanks::Expert) append_in_place(graph, index, division(index));
    if (!adds()) return;
    // Ranks meet in one order: all that a group does is on one lane, that of what its ranks exchange.
    Op op = context_.new_op(stage.sum.label, stage.sum.work, Phase::Reduce, index);
    if (of_ == GradientRanks::Tensor)
      context_.exchange(graph, op, group_);
    else
      op = context_.collective(graph, stage.sum.label, stage.sum.work, Phase::Reduce, index, group_);
    append_in_place(graph, index, std::move(op));
  }

 private:
  struct Labelled {
    std::int32_t label = kNone;
    WorkId work = kNone;
  };
  struct Stage {
    Labelled sum, division;
  };
  bool is_mine(std::size_t index) const { return context_.spec(index).gradients == of_; }
  // Where ranks divide experts' states, what makes parts of gradients has added them up.
  bool adds() const { return group_.size > 1 && (of_ == GradientRanks::Tensor || context_.experts_share.parts == 1); }
  std::vector<std::int64_t> sizes_of(std::int64_t elements) const {
    const StepOptions& options = context_.options;
    if (of_ == GradientRanks::Expert) return options.same_experts_sizes(elements);
    std::vector<std::int64_t> sizes{elements, group_.size};
    if (options.tensor_on_host > 0) sizes.push_back(options.tensor_on_host);
    return sizes;
  }

  // An expert's gradient is of all samples of the ranks that send to it, and losses are means of a rank's own.
  void add_division(Graph& graph, std::size_t index, std::int64_t elements, DType type) {
    const auto [found, fresh] = divisions_.try_emplace(elements, kNone);
    if (fresh)
      found->second = graph.add_work({"divide_gradient",
                                      type,
                                      {elements, context_.options.expert_group.size},
                                      {memory_kernel(2 * elements * size_of(type))}});
    stages_[index].division = {graph.intern(context_.spec(index).name + ".experts_mean"), found->second};
  }
  Op division(std::size_t index) const {
    const Labelled& what = stages_[index].division;
    Op op = context_.new_op(what.label, what.work, Phase::Reduce, index);
    op.workspace_bytes = division_workspace(context_.plan().precision);
    return op;
  }
  void append_in_place(Graph& graph, std::size_t index, Op op) {
    StepStage& stage = context_.stages[index];
    op.reads.push_back(stage.gradient_value);
    const ValueId local = stage.gradient_value;
    stage.gradient_value = graph.new_version(stage.gradient);
    op.writes.push_back({stage.gradient_value, local});
    graph.append(std::move(op));
  }

  StepContext& context_;
  const GradientRanks of_;
  const RankGroup& group_;
  std::vector<Stage> stages_;
  std::map<std::int64_t, WorkId> works_, divisions_;  // by elements
};

class AddGradients final : public Rewrite {
 public:
  AddGradients(std::string_view name, GradientRanks of) : name_(name), of_(of) {}
  std::string_view name() const override { return name_; }
  Order order() const override { return Order::Sums; }
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
