// TrainingSource's updates by signs of the momentum (one_bit.hpp): what each op reads and writes.
//
//   one_bit.begin     reads  gradient, m, [control]; writes signs, kept, in m's storage. The first after the warm-up
//   one_bit.compress  reads  gradient, kept, [control]; writes signs, kept. Both: Work::sizes: 1 with error feedback
//   one_bit.update    reads  signs, v, [parameter], [master_low], [control]; writes parameter, [master_low].
//                     Work::sizes: warmup_steps
// Work::sizes of all begin with the block. m and kept are versions of one tensor.
#include "core/base/check.hpp"
#include "core/formats/one_bit.hpp"
#include "core/graph/kernels.hpp"
#include "core/workloads/common/training_source.hpp"

namespace tandem {

void TrainingSource::add_one_bit(Graph& graph, std::size_t index) {
  const StageSpec& s = spec(index);
  OneBit& one_bit = one_bits_[index];
  for (std::size_t i = 0; i < plan_.states.size(); ++i) {
    if (plan_.states[i].name == "adam_m") one_bit.m = stages_[index].states[i];
    if (plan_.states[i].name == "adam_v") one_bit.v = stages_[index].states[i];
  }
  CHECK(one_bit.m != kNone && one_bit.v != kNone, s.name);
  Tensor signs;
  signs.name = s.name + ".signs";
  signs.role = Role::Gradient;
  signs.type = DType::F32;  // words of 4 bytes
  if (s.layout != nullptr) signs.layout = sign_layout(*s.layout, one_bit_->block);
  signs.bytes =
      (s.layout == nullptr ? sign_words(s.elements, one_bit_->block) : signs.layout->elements) * size_of(DType::F32);
  signs.layer = layers_[index];
  one_bit.signs = graph.add_tensor(std::move(signs));
  one_bit.label = graph.intern(s.name + ".compress");
  const auto first = stage_of_size_.at(s.elements);
  if (first == index) return add_one_bit_works(graph, index);
  one_bit.begin = one_bits_[first].begin;
  one_bit.compress = one_bits_[first].compress;
  one_bit.update = one_bits_[first].update;
}

void TrainingSource::add_one_bit_works(Graph& graph, std::size_t index) {
  const StageSpec& s = spec(index);
  OneBit& one_bit = one_bits_[index];
  const auto bytes_of = [&](TensorId tensor) { return graph.tensor(tensor).bytes; };
  const std::int64_t signs = bytes_of(one_bit.signs);
  const Kernel compress = memory_kernel(bytes_of(stages_[index].gradient) + 2 * bytes_of(one_bit.m) + signs);
  const std::vector<std::int64_t> sizes{one_bit_->block, one_bit_->error_feedback};
  one_bit.begin = graph.add_work({"one_bit.begin", plan_.precision, sizes, {compress}});
  one_bit.compress = graph.add_work({"one_bit.compress", plan_.precision, sizes, {compress}});
  std::int64_t traffic = signs + bytes_of(one_bit.v) + 2 * bytes_of(stages_[index].parameter);
  for (TensorId state : stages_[index].states)
    if (state != one_bit.m && state != one_bit.v) traffic += 2 * bytes_of(state);
  const Kernel update =
      plan_.optimizer_fixed_ns > 0 ? fixed_kernel(plan_.optimizer_fixed_ns) : optimizer_kernel(s.elements, traffic);
  one_bit.update =
      graph.add_work({"one_bit.update", plan_.precision, {one_bit_->block, one_bit_->warmup_steps}, {update}});
}

void TrainingSource::compress_momentum(Graph& graph, std::size_t index) {
  const OneBit& one_bit = one_bits_[index];
  Stage& stage = stages_[index];
  const bool begins = first_step_ + step_ == one_bit_->warmup_steps;
  Op op = new_op(one_bit.label, begins ? one_bit.begin : one_bit.compress, Phase::Reduce, index);
  op.reads.push_back(stage.gradient_value);
  const ValueId kept = graph.tensor(one_bit.m).latest;
  op.reads.push_back(kept);
  if (controls_update()) op.reads.push_back(control_value_);
  stage.gradient_value = graph.new_version(one_bit.signs);
  op.writes.push_back({stage.gradient_value, kNone});
  op.writes.push_back({graph.new_version(one_bit.m), kept});
  graph.append(std::move(op));
}

// The host's alone, where what it reads is.
void TrainingSource::optimize_by_signs(Graph& graph, std::size_t index) {
  const OneBit& one_bit = one_bits_[index];
  Stage& stage = stages_[index];
  Op op = new_op(stage.labels.optimizer, one_bit.update, Phase::OptimizerStep, index);
  op.engine = Engine::CpuOptimizer;
  op.engines = engine_bit(Engine::CpuOptimizer);
  op.reads.push_back(stage.gradient_value);
  op.reads.push_back(graph.tensor(one_bit.v).latest);
  const auto replace = [&](TensorId tensor, bool reads) {
    const ValueId old = graph.tensor(tensor).latest;
    if (reads) op.reads.push_back(old);
    op.writes.push_back({graph.new_version(tensor), old});
  };
  replace(stage.parameter, plan_.update_reads_parameter());
  for (std::size_t i = 0; i < plan_.states.size(); ++i)
    if (stage.states[i] != one_bit.m && stage.states[i] != one_bit.v) replace(stage.states[i], true);
  if (controls_update()) op.reads.push_back(control_value_);
  stage.parameter_in_use = op.writes.front().value;
  graph.append(std::move(op));
}

}  // namespace tandem
