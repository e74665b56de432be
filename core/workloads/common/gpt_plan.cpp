#include "core/workloads/common/gpt_plan.hpp"

#include "core/formats/layout.hpp"
#include "core/graph/kernels.hpp"
#include "core/workloads/common/gpt_tiles.hpp"
#include "core/workloads/common/language_head.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/common/tiled_loss.hpp"

namespace tandem {
namespace {

using Sizes = TransformerSizes;

OpSpec spec_of(const Sizes& s, const char* body, std::vector<Kernel> kernels, std::int64_t workspace,
               bool accumulates = false) {
  return {{body, s.type, gpt_work_sizes(s, accumulates), std::move(kernels)}, workspace + library_temporaries(s)};
}

std::int64_t block_forward_workspace(const Sizes& s) {
  WorkspaceMeter meter;
  touch_norm_forward(meter, s);
  touch_attention(meter, s, /*saves=*/true);
  return meter.peak();
}

std::int64_t block_forward_light_workspace(const Sizes& s) {
  WorkspaceMeter meter;
  meter.take(s.rows(s.hidden));  // after the attention's residual
  const auto qkv = meter.take(3 * s.rows(s.hidden));
  touch_norm_forward(meter, s);
  touch_attention(meter, s, /*saves=*/false);
  meter.drop(qkv);
  meter.take(s.rows(s.width()));
  touch_norm_forward(meter, s);
  return meter.peak();
}

std::int64_t block_backward_workspace(const Sizes& s, bool accumulates) {
  WorkspaceMeter meter;
  const std::int64_t c = s.hidden;
  const auto norm2 = meter.take(s.rows(c));
  const auto up = meter.take(s.rows(s.width()));
  touch_linear_gradient(meter, s, c, s.width(), accumulates);
  touch_linear_gradient(meter, s, s.width(), c, accumulates);
  meter.drop(up);
  meter.drop(meter_norm_backward(meter, s));
  meter.drop(norm2);
  const auto qkv = meter_attention_backward(meter, s, accumulates);
  meter.take(s.rows(c));  // the first norm's output's gradient
  meter.drop(qkv);
  meter_norm_backward(meter, s);
  return meter.peak();
}

std::vector<TensorSpec> block_saved(const Sizes& s) {
  const auto row = s.rows(s.hidden);
  return {{"ln1_mean", DType::F32, s.statistic()},
          {"ln1_rstd", DType::F32, s.statistic()},
          {"ln1", s.type, row},
          {"qkv", s.type, 3 * row},
          {"attention", s.type, row},
          attention_saved(s),
          {"middle", s.type, row},  // after the attention's residual: the second norm's input
          {"ln2_mean", DType::F32, s.statistic()},
          {"ln2_rstd", DType::F32, s.statistic()},
          {"ln2", s.type, row},
          {"up", s.type, s.rows(s.width())},
          {"gelu", s.type, s.rows(s.width())}};
}

StageSpec embedding_stage(TrainingPlan& plan, const Sizes& s) {
  StageSpec stage;
  stage.name = "embedding";
  stage.layout = gpt_embedding_layout(s);
  stage.elements = stage.layout->elements;
  stage.output_bytes = s.rows(s.hidden);
  stage.reads_inputs = stage.backward_reads_inputs = true;
  stage.backward_reads_parameter = false;
  const std::int64_t row = s.rows(s.hidden), table = s.vocabulary * s.hidden * size_of(s.type);
  const std::vector<Kernel> forward = {memory_kernel(2 * row), memory_kernel(2 * row)};
  stage.forward = plan.add(spec_of(s, "gpt.embedding.forward", forward, 0));
  for (const bool accumulates : {false, true}) {
    WorkspaceMeter meter;
    meter.touch(table);
    touch_gradient(meter, s, s.sequence * s.hidden, accumulates);
    std::vector<Kernel> backward = {memory_kernel(table + row), memory_kernel((2 + accumulates + s.tied) * table),
                                    memory_kernel(row)};
    auto& op = accumulates ? stage.backward_accumulate : stage.backward;
    op = plan.add(spec_of(s, "gpt.embedding.backward", std::move(backward), meter.peak(), accumulates));
  }
  return stage;
}

StageSpec block_stage(TrainingPlan& plan, const Sizes& s) {
  StageSpec stage;
  stage.layout = gpt_block_layout(s);
  stage.elements = stage.layout->elements;
  stage.output_bytes = s.rows(s.hidden);
  stage.saved = block_saved(s);
  stage.saves_input = true;
  stage.recomputable = true;
  const auto forward = block_forward_kernels(s, true);
  const std::int64_t saving = block_forward_workspace(s);
  stage.forward = plan.add(spec_of(s, "gpt.block.forward", forward, saving));
  stage.forward_light = plan.add(spec_of(s, "gpt.block.forward_light", forward, block_forward_light_workspace(s)));
  stage.recompute = plan.add(spec_of(s, "gpt.block.recompute", block_forward_kernels(s, false), saving));
  for (const bool accumulates : {false, true}) {
    auto& op = accumulates ? stage.backward_accumulate : stage.backward;
    op = plan.add(spec_of(s, "gpt.block.backward", block_backward_kernels(s, accumulates),
                          block_backward_workspace(s, accumulates), accumulates));
  }
  return stage;
}

std::vector<StageSpec> block_stages(TrainingPlan& plan, const Scenario& scenario, const Sizes& s) {
  const std::int64_t tiles = scenario.workload.linear_tiles;
  if (tiles == 1) return {block_stage(plan, s)};
  require_option(tiles > 1 && s.heads % tiles == 0, "linear_tiles",
                 std::to_string(tiles) + " does not divide heads (" + std::to_string(s.heads) + ")",
                 "allowed: a divisor of heads");
  require_option(2 * tiles * s.layers <= kMostLayers, "layers, linear_tiles",
                 std::to_string(2 * tiles * s.layers) + " tiles are too many",
                 "allowed: at most " + std::to_string(kMostLayers));
  return tiled_block_stages(plan, s, tiles);
}

void add_whole_head(TrainingPlan& plan, StageSpec& stage, const Sizes& s) {
  stage.saved.push_back({"ln", s.type, s.rows(s.hidden)});
  add_loss(stage, s);
  auto forward = norm_forward_kernels(s);
  append(forward, decoder_forward_kernels(s));
  WorkspaceMeter forward_meter;
  touch_norm_forward(forward_meter, s);
  meter_decoder_forward(forward_meter, s);
  stage.forward = plan.add(spec_of(s, "gpt.head.forward", forward, forward_meter.peak()));
  for (const bool accumulates : {false, true}) {
    WorkspaceMeter meter;
    meter_decoder_backward(meter, s, accumulates);
    meter_norm_backward(meter, s);
    auto backward = decoder_backward_kernels(s, accumulates);
    append(backward, norm_backward_kernels(s));
    auto& op = accumulates ? stage.backward_accumulate : stage.backward;
    op = plan.add(spec_of(s, "gpt.head.backward", std::move(backward), meter.peak(), accumulates));
  }
}

OpSpec tiled_forward(const Sizes& s, const char* body, bool gradients) {
  auto kernels = norm_forward_kernels(s);
  append(kernels, tiled_decoder_kernels(s, gradients, /*bias=*/false));
  WorkspaceMeter meter;
  meter.take(s.rows(s.hidden)), meter.take(s.statistic()), meter.take(s.statistic());  // the norm
  meter_tiled_decoder(meter, s, gradients);
  return spec_of(s, body, std::move(kernels), meter.peak());
}

void add_tiled_head(TrainingPlan& plan, StageSpec& stage, const Sizes& s) {
  add_tiled_loss(stage, s, /*bias=*/false);
  stage.forward = plan.add(tiled_forward(s, "gpt.tiled_head.forward", /*gradients=*/true));
  stage.forward_light = plan.add(tiled_forward(s, "gpt.tiled_head.forward_light", /*gradients=*/false));
  for (const bool accumulates : {false, true}) {
    WorkspaceMeter meter;
    meter_norm_backward(meter, s);
    auto kernels = hand_on_kernels(s, accumulates);
    append(kernels, norm_backward_kernels(s));
    auto& op = accumulates ? stage.backward_accumulate : stage.backward;
    op = plan.add(spec_of(s, "gpt.tiled_head.backward", std::move(kernels), meter.peak(), accumulates));
  }
}

StageSpec head_stage(TrainingPlan& plan, const Sizes& s) {
  StageSpec stage;
  stage.name = "head";
  stage.layout = gpt_final_layout(s);
  stage.elements = stage.layout->elements;
  stage.saved = {{"ln_mean", DType::F32, s.statistic()}, {"ln_rstd", DType::F32, s.statistic()}};
  stage.saves_input = true;
  s.loss_tiles > 1 ? add_tiled_head(plan, stage, s) : add_whole_head(plan, stage, s);
  return stage;
}

}  // namespace

std::vector<std::int64_t> gpt_work_sizes(const Sizes& s, bool accumulates) {
  return {s.batch,         s.sequence, s.hidden,    s.heads,      s.vocabulary,
          s.micro_batches, s.tied,     accumulates, s.loss_tiles, s.fused};
}

std::shared_ptr<const Layout> gpt_embedding_layout(const Sizes& s) {
  return LayoutBuilder().add("wte", {s.vocabulary, s.hidden}).add("wpe", {s.sequence, s.hidden}).build();
}

std::shared_ptr<const Layout> gpt_block_layout(const Sizes& s) {
  LayoutBuilder layout;
  layout.add_norm("ln1", s.hidden).add_norm("ln2", s.hidden);
  add_block_linears(layout, s);
  return layout.build();
}

std::shared_ptr<const Layout> gpt_final_layout(const Sizes& s) {
  LayoutBuilder layout;
  layout.add_norm("ln_f", s.hidden);
  if (!s.tied) layout.add("output.weight", {s.vocabulary, s.hidden});
  return layout.build();
}

TrainingPlan gpt_plan(const Scenario& scenario) {
  const Sizes s = transformer_sizes(scenario);
  TrainingPlan plan;
  plan.family = "gpt";
  plan.precision = s.type;
  plan.batch = token_batch("gpt.batch.load", s);
  plan.stages.push_back(embedding_stage(plan, s));
  const std::vector<StageSpec> block = block_stages(plan, scenario, s);
  plan.block_stages = std::ssize(block);
  for (std::int64_t i = 0; i < s.layers; ++i)
    for (const StageSpec& stage : block) {
      plan.stages.push_back(stage);
      plan.stages.back().name = "block" + std::to_string(i) + stage.name;
    }
  plan.stages.push_back(head_stage(plan, s));
  if (s.tied) {
    plan.stages.back().tied_to = 0;
    plan.stages.back().contribution_bytes = s.vocabulary * s.hidden * size_of(s.type);
  }
  plan.set_adam_states(scenario.optimizer.state_bits);
  return plan;
}

}  // namespace tandem
