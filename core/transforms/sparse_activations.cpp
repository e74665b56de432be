// What forward saves for backward is stored sparse in between: of each 64 numbers the largest by magnitude, as in
// activation compression by top-k (core/formats/sparse_blocks.hpp). Backward reads what comes back, zeros for the rest.
// Outputs of stages, which others read, too, stay as they are; so does what is recomputed, which is not stored.
//
//   activations.encode  reads  what the stage saved; writes each in its sparse form
//   activations.decode  reads  those; writes each as numbers. Both: Work::sizes: numbers kept of a block, elements of
//                       each
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/formats/sparse_blocks.hpp"
#include "core/graph/kernels.hpp"
#include "core/step/context.hpp"
#include "core/step/passes.hpp"
#include "core/transforms/common/entry.hpp"

namespace tandem {
namespace {

// What is smaller saves little beside an op before and after: values that matter are megabytes.
constexpr std::int64_t kLeastElements = 64 * 1024;

class SparseActivations final : public StepTransform {
 public:
  SparseActivations(StepContext& context, std::int64_t kept)
      : context_(context), kept_(kept), stages_(context.stage_count()) {
    const auto sparse = [&](const StageSpec& s) { return !places_of(s).empty(); };
    const std::vector<StageSpec>& stages = context.plan().stages;
    if (std::none_of(stages.begin(), stages.end(), sparse))
      throw ConfigError(
          "workload.sparse_activations: no stage saves an input of a linear layer, a convolution or an activation "
          "function with 65536 numbers or more; allowed: where one does, such as in a larger batch");
  }
  void after_forward(Graph& graph, std::size_t index, PassesPart& passes) override;
  void before_backward(Graph& graph, std::size_t index, PassesPart& passes) override;

 private:
  struct Stage {
    std::int32_t encode_label = kNone, decode_label = kNone;
    std::vector<ValueId> sparse;  // of the micro-batch in hand, by place in places_of()
  };
  struct Works {
    WorkId encode = kNone, decode = kNone;
  };
  // Among what it saves.
  std::vector<std::size_t> places_of(const StageSpec& spec) const;
  const Works& works_of(Graph& graph, const std::vector<std::int64_t>& elements);
  TensorId sparse_form_of(Graph& graph, std::size_t index, TensorId saved);
  Op new_op(std::int32_t label, WorkId work, Phase phase, std::size_t index) const;
  std::int64_t number_bytes() const { return size_of(context_.plan().precision); }

  StepContext& context_;
  std::int64_t kept_;  // of a block
  std::vector<Stage> stages_;
  std::map<std::vector<std::int64_t>, Works> works_;  // by elements of each
  std::map<TensorId, TensorId> sparse_forms_;
};

std::vector<std::size_t> SparseActivations::places_of(const StageSpec& spec) const {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < spec.saved.size(); ++i) {
    const TensorSpec& saved = spec.saved[i];
    if (saved.lossy && saved.type == context_.plan().precision && saved.bytes >= kLeastElements * number_bytes())
      places.push_back(i);
  }
  return places;
}

// A kernel reads and writes both forms of each.
const SparseActivations::Works& SparseActivations::works_of(Graph& graph, const std::vector<std::int64_t>& elements) {
  const auto [found, fresh] = works_.try_emplace(elements);
  if (!fresh) return found->second;
  std::vector<std::int64_t> sizes{kept_};
  std::vector<Kernel> kernels;
  for (const std::int64_t n : elements) {
    sizes.push_back(n);
    kernels.push_back(memory_kernel(n * number_bytes() + sparse_bytes(n, kept_, number_bytes())));
  }
  const DType type = context_.plan().precision;
  found->second.encode = graph.add_work({"activations.encode", type, sizes, kernels});
  found->second.decode = graph.add_work({"activations.decode", type, std::move(sizes), std::move(kernels)});
  return found->second;
}

// Tensors come with the first step of each size: a plan of other sizes saves others.
TensorId SparseActivations::sparse_form_of(Graph& graph, std::size_t index, TensorId saved) {
  const auto [found, fresh] = sparse_forms_.try_emplace(saved, kNone);
  if (!fresh) return found->second;
  const Tensor& numbers = graph.tensor(saved);
  const std::string name = numbers.name.substr(numbers.name.find('.') + 1) + "_sparse";
  const std::int64_t bytes = sparse_bytes(numbers.bytes / number_bytes(), kept_, number_bytes());
  return found->second = graph.add_tensor(context_.tensor_of(index, name, Role::Activation, DType::U8, bytes));
}

Op SparseActivations::new_op(std::int32_t label, WorkId work, Phase phase, std::size_t index) const {
  Op op = context_.new_op(label, work, phase, index);
  if (context_.spec(index).may_run_on_cpu) op.engines |= engine_bit(Engine::CpuCompute);
  context_.place(op, index);
  return op;
}

void SparseActivations::after_forward(Graph& graph, std::size_t index, PassesPart& passes) {
  const std::vector<std::size_t> places = places_of(context_.spec(index));
  if (places.empty()) return;
  Stage& stage = stages_[index];
  if (stage.encode_label == kNone) {
    stage.encode_label = graph.intern(context_.spec(index).name + ".encode");
    stage.decode_label = graph.intern(context_.spec(index).name + ".decode_saved");
  }
  std::vector<std::int64_t> elements;
  for (const std::size_t place : places) elements.push_back(context_.spec(index).saved[place].bytes / number_bytes());
  Op op = new_op(stage.encode_label, works_of(graph, elements).encode, Phase::Forward, index);
  stage.sparse.clear();
  for (const std::size_t place : places) {
    const ValueId saved = passes.saved(index, place);
    op.reads.push_back(saved);
    stage.sparse.push_back(graph.new_version(sparse_form_of(graph, index, graph.value(saved).tensor)));
    op.writes.push_back({stage.sparse.back(), kNone});
  }
  graph.append(std::move(op));
}

// Each stage goes backward once after its forward, of the same sizes.
void SparseActivations::before_backward(Graph& graph, std::size_t index, PassesPart& passes) {
  Stage& stage = stages_[index];
  if (stage.sparse.empty()) return;
  const std::vector<std::size_t> places = places_of(context_.spec(index));
  CHECK(places.size() == stage.sparse.size(), context_.spec(index).name, places.size(), stage.sparse.size());
  std::vector<std::int64_t> elements;
  for (const std::size_t place : places) elements.push_back(context_.spec(index).saved[place].bytes / number_bytes());
  Op op = new_op(stage.decode_label, works_of(graph, elements).decode, Phase::Gather, index);
  op.reads.assign(stage.sparse.begin(), stage.sparse.end());
  for (const std::size_t place : places) {
    ValueId& saved = passes.saved(index, place);
    saved = graph.new_version(graph.value(saved).tensor);
    op.writes.push_back({saved, kNone});
  }
  stage.sparse.clear();
  graph.append(std::move(op));
}

class SparseActivationsRewrite final : public Rewrite {
 public:
  explicit SparseActivationsRewrite(std::int64_t kept) : kept_(kept) {}
  std::string_view name() const override { return "sparse_activations"; }
  Order order() const override { return Order::Ranks; }  // after what recomputes, and what says where passes run
  bool approximate() const override { return kept_ < kSparseBlock; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<SparseActivations>(context, kept_);
  }

 private:
  std::int64_t kept_;
};

std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites&) {
  const double keep = scenario.workload.sparse_activations.keep;
  if (keep == 0) return nullptr;
  return std::make_shared<SparseActivationsRewrite>(kept_of_block(keep));
}

}  // namespace
}  // namespace tandem

TANDEM_TRANSFORM(sparse_activations, of_scenario,
                 "Stores what backward reads sparse: of each 64 numbers the largest by magnitude",
                 "workload.sparse_activations: {keep}")
