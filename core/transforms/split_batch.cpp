//   gradient.accumulate reads  the device's sum, the CPU's; writes their sum in the place of the first
#include "core/transforms/split_batch.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/step/context.hpp"
#include "core/transforms/common/entry.hpp"

namespace tandem {
namespace {

class SplitBatch final : public StepTransform {
 public:
  SplitBatch(StepContext& context, std::shared_ptr<const CpuShare> share)
      : context_(context), share_(std::move(share)), stages_(context.stage_count()) {
    if (context.options.devices > 1)
      throw ConfigError("workload.devices: a step that the CPU shares with a device has one; allowed: 1");
  }

  void add_gradient(Graph& graph, std::size_t index) override {
    const StepStage& bucket = context_.stages[index];
    Stage& stage = stages_[index];
    stage.of_device = bucket.backward_writes;
    const Tensor& gradient = graph.tensor(bucket.backward_writes);
    stage.of_cpu =
        graph.add_tensor(context_.bucket_tensor(index, "cpu_gradient", Role::Gradient, gradient.type, gradient.bytes));
    stage.label = graph.intern(context_.spec(index).name + ".add_gradient");
  }

  void add_works(Graph& graph, std::size_t index) override {
    const std::int64_t elements = context_.spec(index).elements;
    const DType type = context_.plan().precision;
    const auto [found, fresh] = works_.try_emplace(elements, kNone);
    if (fresh)
      found->second =
          graph.add_work({"gradient.accumulate", type, {elements}, {memory_kernel(3 * elements * size_of(type))}});
    stages_[index].work = found->second;
  }

  // An evaluation, which may have many more micro-batches, is the device's.
  void begin_pass(Phase phase) override {
    const std::int64_t all = context_.options.micro_batches;
    context_.on_cpu = false;
    if (phase == Phase::Evaluate) return;
    if (context_.micro_batch == 0) on_cpu_ = std::clamp<std::int64_t>(share_->micro_batches, 0, all - 1);
    take_micro_batch();
  }

  void before_backward(Graph&, std::size_t index, PassesPart&) override {
    take_micro_batch();  // in a pipeline others went forward since
    context_.stages[index].backward_writes = is_on_cpu() ? stages_[index].of_cpu : stages_[index].of_device;
  }

  void after_backward(Graph&, std::size_t index) override {
    Stage& stage = stages_[index];
    (is_on_cpu() ? stage.cpu_sum : stage.device_sum) = context_.stages[index].gradient_value;
  }

  void reduce(Graph& graph, std::size_t index) override {
    context_.on_cpu = false;
    if (on_cpu_ == 0) return;
    const Stage& stage = stages_[index];
    Op op = context_.new_op(stage.label, stage.work, Phase::Reduce, index);
    op.reads = {stage.device_sum, stage.cpu_sum};
    ValueId& gradient = context_.stages[index].gradient_value;
    gradient = graph.new_version(stage.of_device);
    op.writes.push_back({gradient, stage.device_sum});
    graph.append(std::move(op));
  }

 private:
  struct Stage {
    TensorId of_device = kNone, of_cpu = kNone;
    ValueId device_sum = kNone, cpu_sum = kNone;
    std::int32_t label = kNone;
    WorkId work = kNone;
  };
  void take_micro_batch() {
    const std::int64_t first_on_cpu = context_.options.micro_batches - on_cpu_;
    context_.on_cpu = is_on_cpu();
    context_.begins_a_sum = context_.micro_batch == 0 || context_.micro_batch == first_on_cpu;
  }
  bool is_on_cpu() const { return context_.micro_batch >= context_.options.micro_batches - on_cpu_; }

  StepContext& context_;
  std::shared_ptr<const CpuShare> share_;
  std::int64_t on_cpu_ = 0;  // micro-batches of the step in hand
  std::vector<Stage> stages_;
  std::map<std::int64_t, WorkId> works_;  // by elements
};

class SplitBatchRewrite final : public Rewrite {
 public:
  explicit SplitBatchRewrite(std::shared_ptr<const CpuShare> share) : share_(std::move(share)) {}
  std::string_view name() const override { return "split_batch"; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<SplitBatch>(context, share_);
  }

 private:
  std::shared_ptr<const CpuShare> share_;
};

}  // namespace

std::shared_ptr<const Rewrite> split_batch(std::shared_ptr<const CpuShare> share) {
  return std::make_shared<SplitBatchRewrite>(std::move(share));
}

}  // namespace tandem

TANDEM_TRANSFORM(split_batch, nullptr, "Some of a step's micro-batches are computed on the CPU, beside the device",
                 "policy.name: adaptive, hyscale, hybrid_coarse, hybrid_fine, static_best, learned")
