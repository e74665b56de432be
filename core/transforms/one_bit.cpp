// What each op of 1-bit Adam reads and writes (core/formats/one_bit.hpp has the method).
//
//   one_bit.begin     reads  gradient, m, [control]; writes signs, kept, in m's storage. The first after the warm-up
//   one_bit.compress  reads  gradient, kept, [control]; writes signs, kept. Both: Work::sizes: 1 with error feedback
//   one_bit.update    reads  signs, v, [parameter], [master_low], [control]; writes parameter, [master_low].
//                     Work::sizes: warmup_steps
// Work::sizes of all begin with the block. m and kept are versions of one tensor.
#include "core/transforms/one_bit.hpp"

#include <map>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/formats/one_bit.hpp"
#include "core/graph/kernels.hpp"
#include "core/step/context.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/common/named_moments.hpp"

namespace tandem {
namespace {

class OneBit final : public StepTransform {
 public:
  OneBit(StepContext& context, const OneBitUpdate& update)
      : context_(context), update_(update), stages_(context.stage_count()) {
    CHECK(update.warmup_steps >= 1 && update.block >= 1, update.warmup_steps, update.block);
    context.needs_whole_gradients = true;
  }

  void rewrite(TrainingPlan& plan) override { name_moments(plan); }
  void add(Graph& graph) override;
  void finish_gradient(Graph& graph, std::size_t index) override;
  void before_updates(Graph& graph) override;
  bool update(Graph& graph, std::size_t index) override;

 private:
  struct Works {
    WorkId begin = kNone, compress = kNone, update = kNone;
  };
  struct Stage {
    TensorId signs = kNone, m = kNone, v = kNone;
    std::int32_t label = kNone;
    Works works;
  };
  bool sends_signs() const { return context_.training_step() >= update_.warmup_steps; }
  void add_stage(Graph& graph, std::size_t index);
  Works add_works_of(Graph& graph, std::size_t index) const;
  void compress_momentum(Graph& graph, std::size_t index);
  void optimize_by_signs(Graph& graph, std::size_t index);

  StepContext& context_;
  const OneBitUpdate update_;
  std::vector<Stage> stages_;
  std::map<std::int64_t, Works> works_;  // by elements
};

void OneBit::add(Graph& graph) {
  for (std::size_t i = 0; i < stages_.size(); ++i)
    if (context_.trains(i)) add_stage(graph, i);
}

void OneBit::finish_gradient(Graph& graph, std::size_t index) {
  if (sends_signs() && !context_.controls_update()) compress_momentum(graph, index);
}

void OneBit::before_updates(Graph& graph) {
  if (!sends_signs() || !context_.controls_update()) return;
  for (std::size_t i = stages_.size(); i-- > 0;)
    if (context_.trains(i)) compress_momentum(graph, i);
}

bool OneBit::update(Graph& graph, std::size_t index) {
  if (sends_signs()) optimize_by_signs(graph, index);
  return sends_signs();
}

void OneBit::add_stage(Graph& graph, std::size_t index) {
  const StageSpec& s = context_.spec(index);
  Stage& one_bit = stages_[index];
  one_bit.m = state_named(context_, index, "adam_m"), one_bit.v = state_named(context_, index, "adam_v");
  Tensor signs = context_.tensor_of(index, "signs", Role::Gradient, DType::F32, 0);  // words of 4 bytes
  if (s.layout != nullptr) signs.layout = sign_layout(*s.layout, update_.block);
  signs.bytes =
      (s.layout == nullptr ? sign_words(s.elements, update_.block) : signs.layout->elements) * size_of(DType::F32);
  one_bit.signs = graph.add_tensor(std::move(signs));
  one_bit.label = graph.intern(s.name + ".compress");
  const auto [found, fresh] = works_.try_emplace(s.elements);
  if (fresh) found->second = add_works_of(graph, index);
  one_bit.works = found->second;
}

OneBit::Works OneBit::add_works_of(Graph& graph, std::size_t index) const {
  const TrainingPlan& plan = context_.plan();
  const StepStage& stage = context_.stages[index];
  const Stage& one_bit = stages_[index];
  Works works;
  const auto bytes_of = [&](TensorId tensor) { return graph.tensor(tensor).bytes; };
  const std::int64_t signs = bytes_of(one_bit.signs);
  const Kernel compress = memory_kernel(bytes_of(stage.gradient) + 2 * bytes_of(one_bit.m) + signs);
  const std::vector<std::int64_t> sizes{update_.block, update_.error_feedback};
  works.begin = graph.add_work({"one_bit.begin", plan.precision, sizes, {compress}});
  works.compress = graph.add_work({"one_bit.compress", plan.precision, sizes, {compress}});
  std::int64_t traffic = signs + bytes_of(one_bit.v) + 2 * bytes_of(stage.parameter);
  for (TensorId state : stage.states)
    if (state != one_bit.m && state != one_bit.v) traffic += 2 * bytes_of(state);
  const Kernel update = plan.optimizer_fixed_ns > 0 ? fixed_kernel(plan.optimizer_fixed_ns)
                                                    : optimizer_kernel(context_.spec(index).elements, traffic);
  works.update = graph.add_work({"one_bit.update", plan.precision, {update_.block, update_.warmup_steps}, {update}});
  return works;
}

void OneBit::compress_momentum(Graph& graph, std::size_t index) {
  const Stage& one_bit = stages_[index];
  StepStage& stage = context_.stages[index];
  const bool begins = context_.training_step() == update_.warmup_steps;
  Op op = context_.new_op(one_bit.label, begins ? one_bit.works.begin : one_bit.works.compress, Phase::Reduce, index);
  op.reads.push_back(stage.gradient_value);
  const ValueId kept = graph.tensor(one_bit.m).latest;
  op.reads.push_back(kept);
  if (context_.controls_update()) op.reads.push_back(context_.control);
  stage.gradient_value = graph.new_version(one_bit.signs);
  op.writes.push_back({stage.gradient_value, kNone});
  op.writes.push_back({graph.new_version(one_bit.m), kept});
  graph.append(std::move(op));
}

// The host's alone, where what it reads is.
void OneBit::optimize_by_signs(Graph& graph, std::size_t index) {
  const Stage& one_bit = stages_[index];
  StepStage& stage = context_.stages[index];
  Op op = context_.new_op(stage.optimizer_label, one_bit.works.update, Phase::OptimizerStep, index);
  op.engine = Engine::CpuOptimizer;
  op.engines = engine_bit(Engine::CpuOptimizer);
  op.reads.push_back(stage.gradient_value);
  op.reads.push_back(graph.tensor(one_bit.v).latest);
  write_by_moments(context_, graph, op, index);
  if (context_.controls_update()) op.reads.push_back(context_.control);
  graph.append(std::move(op));
}

class OneBitRewrite final : public Rewrite {
 public:
  explicit OneBitRewrite(const OneBitUpdate& update) : update_(update) {}
  std::string_view name() const override { return "one_bit"; }
  bool approximate() const override { return true; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<OneBit>(context, update_);
  }
  const OneBitUpdate& update() const { return update_; }

 private:
  OneBitUpdate update_;
};

}  // namespace

std::shared_ptr<const Rewrite> one_bit(const OneBitUpdate& update) { return std::make_shared<OneBitRewrite>(update); }

const OneBitUpdate* one_bit_of(const Rewrites& rewrites) {
  const auto* found = dynamic_cast<const OneBitRewrite*>(find_rewrite(rewrites, "one_bit"));
  return found == nullptr ? nullptr : &found->update();
}

}  // namespace tandem

TANDEM_TRANSFORM(one_bit, nullptr, "1-bit Adam: after a warm-up, signs of the momentum travel instead of gradients",
                 "policy one_bit_adam")
