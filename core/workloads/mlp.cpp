// Multi-layer perceptron on images: `layers` linear layers with relu, then a linear classifier with cross entropy. One
// bucket a layer.
#include "core/formats/layout.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/meter.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/common/training_source.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

// One linear layer.
struct Sizes {
  std::int64_t batch, inputs, outputs, micro_batches;
  DType type;
  bool input_gradient;  // false: it reads the images
  bool gpu;
  std::int64_t rows(std::int64_t columns) const { return batch * columns * size_of(type); }
};

// What the libraries' kernels take on a GPU beside what a body allocates, whose temporaries begin at 512 bytes there:
// products that are summed in parts, and the sum of a bias's gradient.
std::int64_t library_temporaries(const Sizes& s) {
  constexpr std::int64_t kMiB = 1 << 20;
  return s.gpu ? kMiB + gpu_row_sum_bytes(s.batch, s.outputs) : 0;
}

// Work::sizes of every mlp body: batch, inputs, outputs, micro_batches, input_gradient, accumulates.
OpSpec spec_of(const Sizes& s, const char* body, std::vector<Kernel> kernels, std::int64_t workspace,
               bool accumulates = false) {
  return {{body,
           s.type,
           {s.batch, s.inputs, s.outputs, s.micro_batches, s.input_gradient, accumulates},
           std::move(kernels)},
          workspace + library_temporaries(s)};
}

void meter_linear_backward(WorkspaceMeter& meter, const Sizes& s, bool accumulates) {
  if (!accumulates) return;
  meter.touch(s.inputs * s.outputs * size_of(s.type));
  meter.touch(s.outputs * size_of(s.type));
}

std::vector<Kernel> linear_backward_kernels(const Sizes& s, bool accumulates) {
  std::vector<Kernel> kernels = {gemm(s.outputs, s.inputs, s.batch, s.type), memory_kernel(s.rows(s.outputs))};
  if (s.input_gradient) kernels.push_back(gemm(s.batch, s.inputs, s.outputs, s.type));
  if (accumulates) kernels.push_back(memory_kernel(3 * s.inputs * s.outputs * size_of(s.type)));
  return kernels;
}

StageSpec hidden_stage(TrainingPlan& plan, const Sizes& s) {
  StageSpec stage;
  stage.layout = LayoutBuilder().add_linear("relu", s.outputs, s.inputs).build();
  stage.elements = stage.layout->elements;
  stage.output_bytes = s.rows(s.outputs);
  stage.saves_output = true;
  stage.saves_input = stage.backward_reads_parameter = s.input_gradient;
  stage.reads_inputs = stage.backward_reads_inputs = !s.input_gradient;
  stage.forward = plan.add(spec_of(
      s, "mlp.layer.forward", {gemm(s.batch, s.outputs, s.inputs, s.type), memory_kernel(2 * s.rows(s.outputs))}, 0));
  for (const bool accumulates : {false, true}) {
    WorkspaceMeter meter;
    meter.take(s.rows(s.outputs));
    meter_linear_backward(meter, s, accumulates);
    auto kernels = linear_backward_kernels(s, accumulates);
    kernels.push_back(memory_kernel(3 * s.rows(s.outputs)));
    auto& op = accumulates ? stage.backward_accumulate : stage.backward;
    op = plan.add(spec_of(s, "mlp.layer.backward", std::move(kernels), meter.peak(), accumulates));
  }
  return stage;
}

StageSpec head_stage(TrainingPlan& plan, const Sizes& s) {
  StageSpec stage;
  stage.name = "head";
  stage.layout = LayoutBuilder().add_linear("output", s.outputs, s.inputs).build();
  stage.elements = stage.layout->elements;
  const std::int64_t probabilities = s.batch * s.outputs * size_of(DType::F32);
  stage.saved = {{"log_probabilities", DType::F32, probabilities}, {"target_count", DType::F32, size_of(DType::F32)}};
  stage.saves_input = true;
  stage.reads_targets = stage.backward_reads_targets = true;
  stage.has_loss = true;
  WorkspaceMeter forward;
  forward.take(s.rows(s.outputs));
  forward.take(size_of(DType::F32));
  stage.forward =
      plan.add(spec_of(s, "mlp.head.forward",
                       {gemm(s.batch, s.outputs, s.inputs, s.type), memory_kernel(2 * probabilities)}, forward.peak()));
  for (const bool accumulates : {false, true}) {
    WorkspaceMeter meter;
    meter.take(s.rows(s.outputs));
    meter.touch_all({size_of(DType::F32), probabilities});
    meter_linear_backward(meter, s, accumulates);
    auto kernels = linear_backward_kernels(s, accumulates);
    kernels.push_back(memory_kernel(3 * probabilities));
    auto& op = accumulates ? stage.backward_accumulate : stage.backward;
    op = plan.add(spec_of(s, "mlp.head.backward", std::move(kernels), meter.peak(), accumulates));
  }
  return stage;
}

TrainingPlan mlp_plan(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  const bool gpu = scenario.machine.gpu;
  TrainingPlan plan;
  plan.family = "mlp";
  plan.precision = w.precision;
  plan.batch.input_type = w.precision;
  plan.batch.input_bytes = w.batch * w.inputs * size_of(w.precision);
  plan.batch.target_bytes = w.batch * size_of(DType::I64);
  plan.batch.load = {"mlp.batch.load",
                     w.precision,
                     {w.batch, w.inputs},
                     {memory_kernel(plan.batch.input_bytes + plan.batch.target_bytes)}};
  plan.stages.push_back(hidden_stage(plan, {w.batch, w.inputs, w.hidden, w.micro_batches, w.precision, false, gpu}));
  if (w.layers > 1) {
    const StageSpec hidden = hidden_stage(plan, {w.batch, w.hidden, w.hidden, w.micro_batches, w.precision, true, gpu});
    plan.stages.insert(plan.stages.end(), static_cast<std::size_t>(w.layers - 1), hidden);
  }
  for (std::size_t i = 0; i < plan.stages.size(); ++i) plan.stages[i].name = "layer" + std::to_string(i);
  plan.stages.push_back(head_stage(plan, {w.batch, w.hidden, w.classes, w.micro_batches, w.precision, true, gpu}));
  plan.set_adam_states(scenario.optimizer.state_bits);
  return plan;
}

std::unique_ptr<StepSource> make_mlp(const Scenario& scenario, const GraphRequest& request) {
  require_training_options(scenario);
  const WorkloadOptions& w = scenario.workload;
  require_size("layers", w.layers, kMostLayers);
  require_size("inputs", w.inputs, kMostSize);
  require_size("hidden", w.hidden, kMostSize);
  require_size("classes", w.classes, kMostSize);
  require_product("inputs, hidden", {w.inputs, w.hidden});
  require_product("hidden", {w.hidden, w.hidden});
  require_product("hidden, classes", {w.hidden, w.classes});
  require_product("batch, inputs", {w.batch, w.inputs});
  require_product("batch, hidden", {w.batch, w.hidden});
  require_product("batch, classes", {w.batch, w.classes});
  require_option(w.recompute == "none", "recompute", "a perceptron has no blocks to recompute", "allowed: none");
  require_option(w.precision == DType::F32, "precision", "a perceptron trains in fp32", "allowed: fp32");
  return std::make_unique<TrainingSource>(mlp_plan(scenario), scenario, request);
}

}  // namespace
}  // namespace tandem

TANDEM_WORKLOAD(mlp, make_mlp, "Multi-layer perceptron with relu, trained to classify images")
