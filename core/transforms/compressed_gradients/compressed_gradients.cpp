// parallel.compress: ranks that add up gradients send them to each other in 16 bits; or, as 1-bit Adam has it (Tang et
// al., ICML 2021), signs of Adam's momentum after a warm-up. common/compressed_mean.hpp has how the mean is taken.
//
//   one_bit.by_momentum reads  m, v, parameter, [master_low]; writes parameter, [master_low]. Work::sizes: warm-up
//   steps
//
// 1-bit Adam: in the warm-up gradients are all-reduced, and Adam is plain. Then v stays as it is. Each rank makes a
// momentum of the common one and its own gradient, the compressed mean of these is the next common one, and all ranks
// update by it. So m and the parameters are the same on all of them, to the bit.
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/graph/kernels.hpp"
#include "core/step/context.hpp"
#include "core/transforms/common/all_reduce.hpp"
#include "core/transforms/common/compressed_mean.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/common/named_moments.hpp"
#include "core/transforms/compressed_gradients/refuse.hpp"

namespace tandem {
namespace {

class CompressedGradients final : public StepTransform {
 public:
  CompressedGradients(StepContext& context, const SentGradients& sent)
      : context_(context), sent_(sent), plain_(context, 0), mean_(context, sent) {}

  void rewrite(TrainingPlan& plan) override {
    if (sent_.code.kind == SentCode::Kind::Signs) name_moments(plan);
  }
  void add(Graph& graph) override;
  void load(Graph& graph, std::size_t index) override { mean_.load(graph, index); }
  void reduce(Graph& graph, std::size_t index) override;
  bool update(Graph& graph, std::size_t index) override;

 private:
  bool sends_momentum() const {
    return sent_.code.kind == SentCode::Kind::Signs && context_.training_step() >= sent_.warmup_steps;
  }
  bool is_warming_up() const { return sent_.code.kind == SentCode::Kind::Signs && !sends_momentum(); }
  TensorId momentum(std::size_t index) const { return state_named(context_, index, "adam_m"); }
  void finish(Graph& graph, std::size_t index);
  WorkId update_work(Graph& graph, std::size_t index);

  StepContext& context_;
  const SentGradients sent_;
  AllReduce plain_;
  CompressedMean mean_;
  std::size_t all_ = 0;                   // gradients of a step
  std::vector<std::size_t> sent_yet_;     // stages of the step in hand, in the order in which their gradients came
  std::size_t taken_ = 0, finished_ = 0;  // of them, those whose mean was taken, and those that have it
  std::map<std::int64_t, WorkId> works_;  // of updates by momentum, by elements
};

void CompressedGradients::add(Graph& graph) {
  plain_.add(graph);
  for (std::size_t i = 0; i < context_.stage_count(); ++i) {
    if (!context_.trains(i)) continue;
    mean_.add_stage(graph, i);
    all_ += context_.goes_backward(i);
  }
}

// The compute lane is in order: what waits for ranks comes a gradient later, lest the backward wait for it, too.
void CompressedGradients::reduce(Graph& graph, std::size_t index) {
  if (is_warming_up()) return plain_.reduce(graph, index);
  std::vector<std::size_t>& final = context_.final_gradients;
  final.clear();
  mean_.send(graph, index, sends_momentum() ? momentum(index) : kNone);
  sent_yet_.push_back(index);
  const bool last = sent_yet_.size() == all_;
  while (taken_ + 1 < sent_yet_.size() || (last && taken_ < all_)) {
    mean_.take_mean(graph, sent_yet_[taken_++]);
    while (finished_ + 1 < taken_ || (last && taken_ == all_ && finished_ < all_))
      finish(graph, sent_yet_[finished_++]);
  }
  if (last) sent_yet_.clear(), taken_ = finished_ = 0;
}

void CompressedGradients::finish(Graph& graph, std::size_t index) {
  StepStage& stage = context_.stages[index];
  if (sends_momentum()) {
    mean_.decode(graph, index, momentum(index));
    return;
  }
  stage.gradient_value = mean_.decode(graph, index, stage.gradient);
  context_.final_gradients.push_back(index);
}

WorkId CompressedGradients::update_work(Graph& graph, std::size_t index) {
  const TrainingPlan& plan = context_.plan();
  const std::int64_t elements = context_.spec(index).elements;
  const auto [found, fresh] = works_.try_emplace(elements, kNone);
  if (!fresh) return found->second;
  std::int64_t traffic = 2 * elements * size_of(plan.precision);
  for (std::size_t i = 0; i < plan.states.size(); ++i) {
    const bool moment = plan.states[i].name == "adam_m" || plan.states[i].name == "adam_v";
    traffic += (moment ? 1 : 2) * graph.tensor(context_.stages[index].states[i]).bytes;
  }
  const Kernel kernel =
      plan.optimizer_fixed_ns > 0 ? fixed_kernel(plan.optimizer_fixed_ns) : optimizer_kernel(elements, traffic);
  return found->second = graph.add_work({"one_bit.by_momentum", plan.precision, {sent_.warmup_steps}, {kernel}});
}

bool CompressedGradients::update(Graph& graph, std::size_t index) {
  if (!sends_momentum()) return false;
  Op op =
      context_.new_op(context_.stages[index].optimizer_label, update_work(graph, index), Phase::OptimizerStep, index);
  for (const char* moment : {"adam_m", "adam_v"})
    op.reads.push_back(graph.tensor(state_named(context_, index, moment)).latest);
  write_by_moments(context_, graph, op, index);
  graph.append(std::move(op));
  return true;
}

class CompressedGradientsRewrite final : public Rewrite {
 public:
  explicit CompressedGradientsRewrite(const SentGradients& sent) : sent_(sent) {}
  std::string_view name() const override { return "compressed_gradients"; }
  Order order() const override { return Order::Ranks; }
  bool approximate() const override { return true; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<CompressedGradients>(context, sent_);
  }

 private:
  SentGradients sent_;
};

std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites&) {
  const SentGradients sent = sent_gradients(scenario);
  require_compressible(scenario, sent);
  return sent.compresses() ? std::make_shared<CompressedGradientsRewrite>(sent) : nullptr;
}

const std::vector<FamilyKey> kKeys = {
    word_key("compress", {"none", "bf16", "fp16", "one_bit"},
             "What data-parallel ranks send to each other in place of gradients as they are. bf16, fp16: gradients in "
             "16 bits, of which parts are added up in fp32. With one_bit: after a warm-up, signs of Adam's momentum "
             "(1-bit Adam)."),
    flag_key("error_feedback", true,
             "What compress drops is kept, and added to what is compressed in the next step: by each rank, and of the "
             "mean."),
    optional_key("compress_warmup", {1, 1'000'000'000},
                 "With compress: one_bit, steps of plain Adam before. By default 15% of the steps."),
    optional_key("compress_block", {kSignsPerWord, 1 << 20},
                 "With compress: one_bit, numbers that share a scale; a multiple of 32, and 1024 by default."),
};

}  // namespace
}  // namespace tandem

TANDEM_TRANSFORM(compressed_gradients, of_scenario,
                 "Data parallel, and what ranks send is compressed: 16-bit gradients, or signs of momentum",
                 "parallel.compress", &kKeys)
