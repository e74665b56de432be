#include "core/step/buckets.hpp"

#include <utility>

#include "core/base/check.hpp"
#include "core/formats/weight_blocks.hpp"
#include "core/graph/kernels.hpp"
#include "core/step/sizes_of_part.hpp"

namespace tandem {

void BucketsPart::add(Graph& graph, std::size_t index) {
  const StageSpec& s = context_.spec(index);
  const TrainingPlan& plan = context_.plan();
  const std::int64_t parts = context_.share_of(s).parts;
  CHECK(s.elements >= 0 && s.elements % parts == 0, s.name, s.elements, parts);
  CHECK(s.layout == nullptr || s.layout->elements == s.elements, s.name, s.layout->elements, s.elements);
  StepStage& stage = context_.stages[index];
  const std::int64_t owned = context_.elements_of_part(index);
  const auto add = [&](std::string_view name, Role role, DType type, std::int64_t bytes, bool persistent) {
    Tensor tensor = context_.bucket_tensor(index, name, role, type, bytes);
    tensor.persistent = persistent;
    return graph.add_tensor(std::move(tensor));
  };
  const std::int64_t bucket_bytes = owned * size_of(plan.precision);
  if (s.code_bits > 0) {
    Tensor codes =
        context_.bucket_tensor(index, "parameter", Role::Parameter, DType::U8, coded_bytes(s.code_bits, owned));
    codes.code_bits = s.code_bits;
    codes.persistent = true;
    stage.parameter = graph.add_tensor(std::move(codes));
  } else if (s.elements > 0) {
    stage.parameter = add("parameter", Role::Parameter, plan.precision, bucket_bytes, true);
  }
  for (const TensorSpec& carried : s.carried) {
    Tensor tensor = context_.tensor_of(index, carried.name, Role::KvCache, carried.type, carried.bytes);
    tensor.persistent = true;
    stage.carried.push_back(graph.add_tensor(std::move(tensor)));
  }
  if (!s.trains()) return;
  for (const StateSpec& state : plan.states) {
    Tensor tensor = context_.bucket_tensor(index, state.name, Role::OptimizerState, state.type, state.bytes(owned));
    tensor.persistent = true;
    if (state.layout != nullptr) {
      tensor.layout = state.layout(*s.layout);
      tensor.bytes = state.bytes(tensor.layout->elements);
    }
    stage.states.push_back(graph.add_tensor(std::move(tensor)));
  }
  stage.gradient = add("gradient", Role::Gradient, plan.precision, bucket_bytes, false);
  stage.backward_writes = stage.gradient;
}

void BucketsPart::load(Graph& graph, std::size_t index) {
  std::vector<TensorId> states = context_.stages[index].states;
  // States that a transform adds come after the plan's.
  const std::size_t count = context_.trains(index) ? context_.plan().states.size() : 0;
  CHECK(states.size() >= count, context_.spec(index).name, states.size(), count);
  states.resize(count);
  states.insert(states.end(), context_.stages[index].carried.begin(), context_.stages[index].carried.end());
  graph.append(load_op(graph, index, "parameters.load", states));
}

Op BucketsPart::load_op(Graph& graph, std::size_t index, const std::string& body, std::span<const TensorId> states) {
  StepStage& stage = context_.stages[index];
  CHECK(stage.parameter != kNone, context_.spec(index).name, "has no weights to load states with");
  std::int64_t bytes = graph.tensor(stage.parameter).bytes;
  for (TensorId state : states) bytes += graph.tensor(state).bytes;
  const WorkId work = graph.add_work({body,
                                      context_.plan().precision,
                                      sizes_of_part(context_, context_.spec(index), context_.elements_of_part(index)),
                                      {memory_kernel(bytes)}});
  Op op = context_.loader_op(graph.intern(context_.spec(index).name + ".load"), work, Phase::Load, index);
  op.step = kNone;
  op.writes.push_back(graph.loaded(stage.parameter));
  stage.parameter_in_use = op.writes.back().value;
  for (TensorId state : states) op.writes.push_back(graph.loaded(state));
  return op;
}

}  // namespace tandem
