// What each op of an update in a subspace reads and writes (subspace_ops.hpp has the method). A projector is two
// tensors, the places of its non-zeros and their values.
//
//   subspace.load      writes [places, values], m, v. Work::sizes: rank
//   subspace.fit       reads  gradient, places, values, m, v; writes values, m, v. Work::sizes: rank,
//                             millionths of the threshold
//   subspace.compress  reads  gradient, [places, values]; writes the gradient in the subspace
//   subspace.adam(w)   reads  that, m, v, [control]; writes the change in the subspace, m, v
//   subspace.apply     reads  parameter, [master_low], change, [places, values], [control];
//                      writes parameter, [master_low]
// Stages without a matrix that is compressed have no projectors, and no fit.
#include "core/transforms/subspace/subspace.hpp"

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/formats/masters.hpp"
#include "core/graph/kernels.hpp"
#include "core/step/context.hpp"
#include "core/step/update.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/subspace/subspace_ops.hpp"

namespace tandem {
namespace {

class Subspace final : public StepTransform {
 public:
  Subspace(StepContext& context, const SubspaceUpdate& update)
      : context_(context), update_(update), stages_(context.stage_count()) {
    CHECK(update.check_every >= 1, update.check_every);
    context.needs_whole_gradients = true;
  }

  // The parameter keeps its master; Adam's moments are of the subspace.
  void rewrite(TrainingPlan& plan) override {
    std::erase_if(plan.states, [&](const StateSpec& s) { return s.name != kMasterLow || !update_.masters; });
  }
  void add(Graph& graph) override {
    for (std::size_t i = 0; i < stages_.size(); ++i)
      if (context_.trains(i)) add_stage(graph, i);
  }
  void load(Graph& graph, std::size_t index) override;
  void finish_gradient(Graph& graph, std::size_t index) override {
    if (context_.training_step() % update_.check_every == 0) fit(graph, index);
    compress(graph, index);
  }
  bool update(Graph& graph, std::size_t index) override;

 private:
  struct Stage {
    std::shared_ptr<const Layout> layout;                             // none where sizes are all that is known
    TensorId places = kNone, values = kNone;                          // of the projectors' non-zeros; or none
    TensorId m = kNone, v = kNone, gradient = kNone, change = kNone;  // in the subspace
    std::int32_t load_label = kNone, compress_label = kNone, fit_label = kNone, apply_label = kNone;
    WorkId load = kNone, compress = kNone, fit = kNone, apply = kNone;
    std::int64_t compress_workspace = 0, fit_workspace = 0, apply_workspace = 0;
    bool projects() const { return places != kNone; }
  };
  void add_stage(Graph& graph, std::size_t index);
  void add_works_of(Graph& graph, std::size_t index);
  void fit(Graph& graph, std::size_t index);
  void compress(Graph& graph, std::size_t index);
  ValueId change(Graph& graph, std::size_t index);
  void apply(Graph& graph, std::size_t index, ValueId change);
  void read_projectors(const Graph& graph, std::size_t index, Op& op) const;

  StepContext& context_;
  const SubspaceUpdate update_;
  std::vector<Stage> stages_;
  std::map<std::int64_t, std::size_t> stage_of_size_;  // by elements: the first, whose works the others share
};

void Subspace::add_stage(Graph& graph, std::size_t index) {
  const StageSpec& s = context_.spec(index);
  CHECK(update_.nonzeros >= 1 && update_.nonzeros <= update_.rank, s.name, update_.nonzeros, update_.rank);
  Stage& subspace = stages_[index];
  std::shared_ptr<const Layout> projectors;
  if (s.layout != nullptr) {
    subspace.layout = subspace_layout(*s.layout, update_.rank);
    projectors = projector_layout(*s.layout, update_);
  }
  const auto add = [&](const char* name, Role role, DType type, const std::shared_ptr<const Layout>& layout) {
    const std::int64_t elements = layout == nullptr ? s.elements : layout->elements;
    Tensor tensor = context_.tensor_of(index, name, role, type, elements * size_of(type));
    tensor.layout = layout;
    tensor.persistent = role == Role::OptimizerState;
    const TensorId id = graph.add_tensor(std::move(tensor));
    if (role == Role::OptimizerState) context_.stages[index].states.push_back(id);
    return id;
  };
  if (projectors != nullptr && !projectors->fields.empty()) {
    subspace.places = add("projector_places", Role::OptimizerState, DType::I16, projectors);
    subspace.values = add("projector_values", Role::OptimizerState, DType::F32, projectors);
  }
  subspace.m = add("adam_m", Role::OptimizerState, DType::F32, subspace.layout);
  subspace.v = add("adam_v", Role::OptimizerState, DType::F32, subspace.layout);
  subspace.gradient = add("subspace_gradient", Role::Gradient, DType::F32, subspace.layout);
  subspace.change = add("subspace_change", Role::Gradient, DType::F32, subspace.layout);
  add_works_of(graph, index);
}

void Subspace::add_works_of(Graph& graph, std::size_t index) {
  const StageSpec& s = context_.spec(index);
  Stage& subspace = stages_[index];
  subspace.load_label = graph.intern(s.name + ".subspace.load");
  subspace.compress_label = graph.intern(s.name + ".compress");
  subspace.fit_label = graph.intern(s.name + ".fit");
  subspace.apply_label = graph.intern(s.name + ".apply");
  const std::int64_t rank = update_.rank, change_bytes = graph.tensor(subspace.change).bytes;
  const std::int64_t elements = change_bytes / size_of(DType::F32);
  SubspaceOp compress, apply, fit;
  if (s.layout == nullptr) {  // nothing is compressed, as far as is known
    compress.kernels = {memory_kernel(s.elements * size_of(context_.plan().precision) + change_bytes)};
    apply.kernels = {memory_kernel(2 * s.elements * size_of(context_.plan().precision) + change_bytes)};
  } else {
    compress = compress_op(*s.layout, update_, context_.plan().precision, context_.options.gpu);
    apply = apply_op(*s.layout, update_, context_.plan().precision, context_.options.gpu);
    fit = fit_op(*s.layout, update_, context_.plan().precision, context_.options.gpu);
    context_.stages[index].optimizer_workspace = optimizer_workspace(context_, *subspace.layout);
  }
  subspace.compress_workspace = compress.workspace_bytes;
  subspace.apply_workspace = apply.workspace_bytes;
  subspace.fit_workspace = fit.workspace_bytes;
  const auto found = stage_of_size_.try_emplace(s.elements, index).first->second;
  if (const Stage& same = stages_[found]; found != index && same.projects() == subspace.projects()) {
    subspace.load = same.load, subspace.compress = same.compress, subspace.fit = same.fit, subspace.apply = same.apply;
    context_.stages[index].optimizer = context_.stages[found].optimizer;
    return;
  }
  subspace.compress =
      graph.add_work({"subspace.compress", context_.plan().precision, {rank}, std::move(compress.kernels)});
  subspace.apply = graph.add_work({"subspace.apply", context_.plan().precision, {rank}, std::move(apply.kernels)});
  const Kernel update = context_.plan().optimizer_fixed_ns > 0
                            ? fixed_kernel(context_.plan().optimizer_fixed_ns)
                            : optimizer_kernel(elements, 6 * change_bytes);  // 2 of 4 read only
  context_.stages[index].optimizer =
      graph.add_work({"subspace." + name_with_states(context_.options.optimizer), DType::F32, {elements}, {update}});
  std::int64_t loaded = 2 * change_bytes;
  if (subspace.projects()) {
    loaded += graph.tensor(subspace.places).bytes + graph.tensor(subspace.values).bytes;
    subspace.fit = graph.add_work({"subspace.fit",
                                   context_.plan().precision,
                                   {rank, std::llround(update_.threshold * 1e6)},
                                   std::move(fit.kernels)});
  }
  subspace.load = graph.add_work({"subspace.load", DType::F32, {rank}, {memory_kernel(loaded)}});
}

void Subspace::load(Graph& graph, std::size_t index) {
  const Stage& subspace = stages_[index];
  Op op = context_.loader_op(subspace.load_label, subspace.load, Phase::Load, index);
  op.step = kNone;
  for (TensorId state : {subspace.places, subspace.values, subspace.m, subspace.v})
    if (state != kNone) op.writes.push_back(graph.loaded(state));
  graph.append(std::move(op));
}

void Subspace::read_projectors(const Graph& graph, std::size_t index, Op& op) const {
  const Stage& subspace = stages_[index];
  if (!subspace.projects()) return;
  op.reads.push_back(graph.tensor(subspace.places).latest);
  op.reads.push_back(graph.tensor(subspace.values).latest);
}

void Subspace::fit(Graph& graph, std::size_t index) {
  const Stage& subspace = stages_[index];
  if (!subspace.projects()) return;
  Op op = context_.new_op(subspace.fit_label, subspace.fit, Phase::Reduce, index);
  op.workspace_bytes = subspace.fit_workspace;
  op.reads.push_back(context_.stages[index].gradient_value);
  op.reads.push_back(graph.tensor(subspace.places).latest);
  for (TensorId state : {subspace.values, subspace.m, subspace.v}) update_in_place(graph, op, state);
  graph.append(std::move(op));
}

void Subspace::compress(Graph& graph, std::size_t index) {
  const Stage& subspace = stages_[index];
  StepStage& stage = context_.stages[index];
  Op op = context_.new_op(subspace.compress_label, subspace.compress, Phase::Reduce, index);
  op.workspace_bytes = subspace.compress_workspace;
  op.reads.push_back(stage.gradient_value);
  read_projectors(graph, index, op);
  stage.gradient_value = graph.new_version(subspace.gradient);
  op.writes.push_back({stage.gradient_value, kNone});
  graph.append(std::move(op));
}

bool Subspace::update(Graph& graph, std::size_t index) {
  apply(graph, index, change(graph, index));
  return true;
}

ValueId Subspace::change(Graph& graph, std::size_t index) {
  const Stage& subspace = stages_[index];
  const StepStage& stage = context_.stages[index];
  Op update = context_.new_op(stage.optimizer_label, stage.optimizer, Phase::OptimizerStep, index);
  update.engines |= engine_bit(Engine::CpuOptimizer);
  update.divisible = true;
  update.workspace_bytes = stage.optimizer_workspace;
  update.reads.push_back(stage.gradient_value);
  const ValueId change = graph.new_version(subspace.change);
  update.writes.push_back({change, kNone});
  for (TensorId state : {subspace.m, subspace.v}) update_in_place(graph, update, state);
  if (context_.controls_update()) update.reads.push_back(context_.control);
  graph.append(std::move(update));
  return change;
}

void Subspace::apply(Graph& graph, std::size_t index, ValueId change) {
  const Stage& subspace = stages_[index];
  StepStage& stage = context_.stages[index];
  Op apply = context_.new_op(subspace.apply_label, subspace.apply, Phase::OptimizerStep, index);
  apply.workspace_bytes = subspace.apply_workspace;
  CHECK(stage.states.size() >= context_.plan().states.size(), context_.spec(index).name, stage.states.size(),
        context_.plan().states.size());
  update_in_place(graph, apply, stage.parameter);
  for (std::size_t i = 0; i < context_.plan().states.size(); ++i) update_in_place(graph, apply, stage.states[i]);
  apply.reads.push_back(change);
  read_projectors(graph, index, apply);
  if (context_.controls_update()) apply.reads.push_back(context_.control);
  stage.parameter_in_use = apply.writes.front().value;
  graph.append(std::move(apply));
}

class SubspaceRewrite final : public Rewrite {
 public:
  explicit SubspaceRewrite(const SubspaceUpdate& update) : update_(update) {}
  std::string_view name() const override { return "subspace"; }
  bool approximate() const override { return true; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<Subspace>(context, update_);
  }

 private:
  SubspaceUpdate update_;
};

}  // namespace

std::shared_ptr<const Rewrite> subspace(const SubspaceUpdate& update) {
  return std::make_shared<SubspaceRewrite>(update);
}

}  // namespace tandem

TANDEM_TRANSFORM(subspace, nullptr, "LSP-Offload: gradients are compressed into a learned subspace, where Adam runs",
                 "policy lsp_offload")
