// Frozen weights are kept as codes of 8 or 4 bits, and made into numbers of the computing type for each op that reads
// them. With adapters this is QLoRA's shape (Dettmers et al., NeurIPS 2023, arXiv 2305.14314, section 3). What is kept,
// copied and brought back are codes (StageSpec::code_bits); numbers live from the op that makes them to the one that
// reads them.
//
//   weights.decode      reads  the bucket's codes; writes its numbers. Work::sizes: elements, bits
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "core/formats/weight_blocks.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/eager_codes.hpp"
#include "core/model/families/common/checks.hpp"
#include "core/step/context.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/common/network_transform.hpp"

namespace tandem {
namespace {

// --- of a network: which modules ---

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNames = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostNames, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMostNames ? text + ", ... " + names.back() : text;
}

// After adapters were added, and it was said which weights are trained.
Network on_network(Network network, const WorkloadOptions& w) {
  if (w.compress.weights == 0) return network;
  const std::vector<std::string>& patterns = w.compress.modules;
  std::vector<bool> used(patterns.size());
  std::vector<std::string> frozen;  // modules that have frozen weights
  for (NetworkModule& m : network.modules) {
    if (!has_frozen_weights(*m.module)) continue;
    frozen.push_back(m.name);
    bool chosen = patterns.empty();
    for (std::size_t i = 0; i < patterns.size(); ++i)
      if (matches(patterns[i], m.name)) used[i] = chosen = true;
    if (chosen) m.frozen_bits = w.compress.weights;
  }
  if (frozen.empty())
    throw ConfigError(
        "workload.compress: all weights are trained, and what is trained is kept as it is; allowed: beside "
        "workload.lora or workload.trained, which leave weights frozen");
  for (std::size_t i = 0; i < patterns.size(); ++i)
    if (!used[i])
      throw ConfigError("workload.compress.modules." + std::to_string(i) + ": \"" + patterns[i] +
                        "\" matches no module that has frozen weights; allowed: patterns that match one of " +
                        some_of(frozen));
  return network;
}

// --- of steps: codes become numbers before an op that reads them ---

class WeightCompression final : public StepTransform {
 public:
  // `eager`: as core/model/eager_codes.hpp has it.
  WeightCompression(StepContext& context, bool eager)
      : context_(context), eager_(eager), stages_(context.stage_count()) {
    require_option(context.share.parts == 1, "compress", "codes are not divided among ranks",
                   "allowed: workload.partition none");
  }
  void rewrite(TrainingPlan& plan) override;
  void add(Graph& graph) override;
  void begin_pass(Phase) override { user_ = stages_.size(); }
  void before_use(Graph& graph, std::size_t index, Phase phase) override;

 private:
  struct Stage {
    TensorId numbers = kNone;
    std::int32_t label = kNone;
    WorkId work = kNone;
    std::int64_t made_for = kNone;  // the use in a row, below, that has its numbers
  };
  void decode(Graph& graph, std::size_t index, std::size_t user, Phase phase);

  std::vector<Kernel> kernels_of(std::int64_t elements, std::int64_t bits) const;

  StepContext& context_;
  const bool eager_;
  std::vector<Stage> stages_;
  std::map<std::pair<std::int64_t, std::int64_t>, WorkId> works_;  // by elements and bits
  // Ops in a row of one stage, such as a recompute and its backward, share what was made for the first of them.
  std::size_t user_ = 0;
  std::int64_t use_ = 0;
};

// Fields begin at whole blocks, so that no block has numbers of two tensors.
void WeightCompression::rewrite(TrainingPlan& plan) {
  std::map<std::pair<const Layout*, std::int64_t>, std::shared_ptr<const Layout>> aligned;  // equal stages share one
  for (StageSpec& stage : plan.stages) {
    if (stage.code_bits == 0) continue;
    CHECK(stage.layout != nullptr && !stage.trains(), stage.name, "has no frozen fields");
    auto& layout = aligned[{stage.layout.get(), stage.code_bits}];
    if (layout == nullptr) layout = aligned_to(*stage.layout, weight_block(stage.code_bits).elements);
    stage.layout = layout;
    stage.elements = layout->elements;
  }
}

void WeightCompression::add(Graph& graph) {
  const DType type = context_.plan().precision;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const StageSpec& s = context_.spec(i);
    if (s.code_bits == 0) continue;
    Tensor numbers = context_.tensor_of(i, "numbers", Role::Activation, type, s.elements * size_of(type));
    numbers.reported_as = Role::Parameter;
    numbers.layout = s.layout;
    stages_[i].numbers = graph.add_tensor(std::move(numbers));
    stages_[i].label = graph.intern(s.name + ".decode");
    const auto [work, fresh] = works_.try_emplace({s.elements, s.code_bits}, kNone);
    if (fresh)
      work->second =
          graph.add_work({"weights.decode", type, {s.elements, s.code_bits}, kernels_of(s.elements, s.code_bits)});
    stages_[i].work = work->second;
  }
}

std::vector<Kernel> WeightCompression::kernels_of(std::int64_t elements, std::int64_t bits) const {
  if (eager_) return eager_kernels(kEagerDecoding, elements);
  return {memory_kernel(coded_bytes(bits, elements) + elements * size_of(context_.plan().precision))};
}

void WeightCompression::before_use(Graph& graph, std::size_t index, Phase phase) {
  if (index != user_) user_ = index, ++use_;
  for (const PortSpec& port : context_.spec(index).inputs)
    if (port.from == PortSpec::From::Bucket) decode(graph, static_cast<std::size_t>(port.index), index, phase);
  decode(graph, index, index, phase);
}

void WeightCompression::decode(Graph& graph, std::size_t index, std::size_t user, Phase phase) {
  CHECK(index < stages_.size(), index, stages_.size());
  Stage& stage = stages_[index];
  if (stage.numbers == kNone || stage.made_for == use_) return;
  stage.made_for = use_;
  StepStage& bucket = context_.stages[index];
  Op op = context_.new_op(stage.label, stage.work, phase, index);
  op.layer = context_.layer_of(user);
  if (context_.spec(user).may_run_on_cpu) op.engines |= engine_bit(Engine::CpuCompute);
  context_.place(op, user);
  op.reads.push_back(bucket.parameter_in_use);
  bucket.whole_parameter = graph.new_version(stage.numbers);
  op.writes.push_back({bucket.whole_parameter, kNone});
  graph.append(std::move(op));
}

class WeightCompressionRewrite final : public Rewrite {
 public:
  explicit WeightCompressionRewrite(bool eager) : eager_(eager) {}
  std::string_view name() const override { return "weight_compression"; }
  Order order() const override { return Order::Ranks; }  // what is divided among them is known by then
  bool approximate() const override { return true; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<WeightCompression>(context, eager_);
  }

 private:
  bool eager_;
};

std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites&) {
  if (scenario.workload.compress.weights == 0) return nullptr;
  const bool eager = scenario.workload.generate.text_or("codes", "fused") == "eager";
  return std::make_shared<WeightCompressionRewrite>(eager);
}

}  // namespace
}  // namespace tandem

TANDEM_TRANSFORM_OF_BOTH(weight_compression, of_scenario, on_network,
                         "Keeps frozen weights in 8 or 4 bits, which become numbers before each use",
                         "workload.compress: {weights, modules}")
