//   gradient.widen      reads  the final gradient; writes it in fp32
#include "core/transforms/fp32_gradients.hpp"

#include <map>
#include <utility>
#include <vector>

#include "core/graph/kernels.hpp"
#include "core/step/context.hpp"
#include "core/transforms/common/entry.hpp"

namespace tandem {
namespace {

class Widening final : public StepTransform {
 public:
  explicit Widening(StepContext& context) : context_(context), stages_(context.stage_count()) {
    context.gradient_type = DType::F32;
  }

  void add_gradient(Graph& graph, std::size_t index) override {
    const std::int64_t bytes = context_.elements_of_part(index) * size_of(DType::F32);
    stages_[index].gradient =
        graph.add_tensor(context_.bucket_tensor(index, "fp32_gradient", Role::Gradient, DType::F32, bytes));
    stages_[index].label = graph.intern(context_.spec(index).name + ".widen");
  }

  void add_works(Graph& graph, std::size_t index) override {
    const std::int64_t elements = context_.elements_of_part(index);
    const DType narrow = context_.plan().precision;
    const auto [found, fresh] = works_.try_emplace(elements, kNone);
    if (fresh) {
      const Kernel kernel = memory_kernel(elements * (size_of(narrow) + size_of(DType::F32)));
      found->second = graph.add_work({"gradient.widen", narrow, {elements}, {kernel}});
    }
    stages_[index].work = found->second;
  }

  void finish_gradient(Graph& graph, std::size_t index) override {
    const Stage& stage = stages_[index];
    ValueId& gradient = context_.stages[index].gradient_value;
    Op op = context_.new_op(stage.label, stage.work, Phase::Reduce, index);
    op.reads.push_back(gradient);
    gradient = graph.new_version(stage.gradient);
    op.writes.push_back({gradient, kNone});
    graph.append(std::move(op));
  }

 private:
  struct Stage {
    TensorId gradient = kNone;
    std::int32_t label = kNone;
    WorkId work = kNone;
  };
  StepContext& context_;
  std::vector<Stage> stages_;
  std::map<std::int64_t, WorkId> works_;  // by elements
};

class Fp32Gradients final : public Rewrite {
 public:
  std::string_view name() const override { return "fp32_gradients"; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    if (size_of(context.plan().precision) != 2) return std::make_unique<StepTransform>();  // they are not narrow
    return std::make_unique<Widening>(context);
  }
};

}  // namespace

std::shared_ptr<const Rewrite> fp32_gradients() { return std::make_shared<Fp32Gradients>(); }

}  // namespace tandem

TANDEM_TRANSFORM(fp32_gradients, nullptr, "16-bit gradients are widened to fp32, once they are final, for the update",
                 "policy.variant: deepspeed")
