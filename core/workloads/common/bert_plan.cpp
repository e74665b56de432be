#include "core/workloads/common/bert_plan.hpp"

#include "core/formats/layout.hpp"
#include "core/graph/kernels.hpp"
#include "core/workloads/common/gpt_plan.hpp"
#include "core/workloads/common/language_head.hpp"
#include "core/workloads/common/tiled_loss.hpp"

namespace tandem {
namespace {

using Sizes = TransformerSizes;

// Work::sizes of every bert body: batch, sequence, hidden, heads, vocabulary, micro_batches, tied, accumulates,
// loss_tiles, fused.
OpSpec spec_of(const Sizes& s, const char* body, std::vector<Kernel> kernels, std::int64_t workspace,
               bool accumulates = false) {
  return {{body,
           s.type,
           {s.batch, s.sequence, s.hidden, s.heads, s.vocabulary, s.micro_batches, s.tied, accumulates, s.loss_tiles,
            s.fused},
           std::move(kernels)},
          workspace + library_temporaries(s)};
}

StageSpec embedding_stage(TrainingPlan& plan, const Sizes& s) {
  StageSpec stage;
  stage.name = "embedding";
  stage.layout = LayoutBuilder()
                     .add("wte", {s.vocabulary, s.hidden})
                     .add("wpe", {s.sequence, s.hidden})
                     .add_norm("ln", s.hidden)
                     .build();
  stage.elements = stage.layout->elements;
  stage.output_bytes = s.rows(s.hidden);
  stage.saved = {{"sum", s.type, s.rows(s.hidden)},
                 {"ln_mean", DType::F32, s.statistic()},
                 {"ln_rstd", DType::F32, s.statistic()}};
  stage.reads_inputs = stage.backward_reads_inputs = true;
  const std::int64_t row = s.rows(s.hidden), table = s.vocabulary * s.hidden * size_of(s.type);
  std::vector<Kernel> forward = {memory_kernel(2 * row), memory_kernel(2 * row)};
  append(forward, norm_forward_kernels(s));
  WorkspaceMeter forward_meter;
  touch_norm_forward(forward_meter, s);
  stage.forward = plan.add(spec_of(s, "bert.embedding.forward", std::move(forward), forward_meter.peak()));
  for (const bool accumulates : {false, true}) {
    WorkspaceMeter meter;
    meter_norm_backward(meter, s);
    meter.touch(table);
    touch_gradient(meter, s, s.sequence * s.hidden, accumulates);
    auto backward = norm_backward_kernels(s);
    append(backward,
           {memory_kernel(table + row), memory_kernel((2 + accumulates + s.tied) * table), memory_kernel(row)});
    auto& op = accumulates ? stage.backward_accumulate : stage.backward;
    op = plan.add(spec_of(s, "bert.embedding.backward", std::move(backward), meter.peak(), accumulates));
  }
  return stage;
}

std::vector<TensorSpec> block_saved(const Sizes& s) {
  const auto row = s.rows(s.hidden);
  return {{"qkv", s.type, 3 * row},
          {"attention", s.type, row},
          attention_saved(s),
          {"attention_sum", s.type, row},  // the first norm's input
          {"ln1_mean", DType::F32, s.statistic()},
          {"ln1_rstd", DType::F32, s.statistic()},
          {"ln1", s.type, row},
          {"up", s.type, s.rows(s.width())},
          {"gelu", s.type, s.rows(s.width())},
          {"feed_forward_sum", s.type, row},  // the second norm's input
          {"ln2_mean", DType::F32, s.statistic()},
          {"ln2_rstd", DType::F32, s.statistic()}};
}

std::int64_t block_forward_workspace(const Sizes& s) {
  WorkspaceMeter meter;
  touch_attention(meter, s, /*saves=*/true);
  touch_norm_forward(meter, s);
  return meter.peak();
}

std::int64_t block_forward_light_workspace(const Sizes& s) {
  WorkspaceMeter meter;
  const std::int64_t row = s.rows(s.hidden);
  const auto sum = meter.take(row);
  const auto qkv = meter.take(3 * row);
  touch_attention(meter, s, /*saves=*/false);
  meter.drop(qkv);
  meter.take(row), meter.take(s.statistic()), meter.take(s.statistic());  // the first norm
  meter.drop(sum);
  const auto up = meter.take(s.rows(s.width()));
  meter.take(row);  // the second sum
  meter.drop(up);
  touch_norm_forward(meter, s);
  return meter.peak();
}

std::int64_t block_backward_workspace(const Sizes& s, bool accumulates) {
  WorkspaceMeter meter;
  const std::int64_t c = s.hidden;
  const auto sum2 = meter_norm_backward(meter, s);
  const auto norm1 = meter.take(s.rows(c));
  const auto up = meter.take(s.rows(s.width()));
  touch_linear_gradient(meter, s, c, s.width(), accumulates);
  touch_linear_gradient(meter, s, s.width(), c, accumulates);
  meter.drop(up);
  meter_norm_backward(meter, s);
  meter.drop(norm1);
  meter.drop(sum2);
  meter_attention_backward(meter, s, accumulates);
  return meter.peak();
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
  stage.forward = plan.add(spec_of(s, "bert.block.forward", forward, block_forward_workspace(s)));
  stage.forward_light = plan.add(spec_of(s, "bert.block.forward_light", forward, block_forward_light_workspace(s)));
  // The last norm's statistics are saved, so all of the block is computed again.
  stage.recompute = plan.add(spec_of(s, "bert.block.recompute", forward, block_forward_workspace(s)));
  for (const bool accumulates : {false, true}) {
    auto& op = accumulates ? stage.backward_accumulate : stage.backward;
    op = plan.add(spec_of(s, "bert.block.backward", block_backward_kernels(s, accumulates),
                          block_backward_workspace(s, accumulates), accumulates));
  }
  return stage;
}

std::shared_ptr<const Layout> head_layout(const Sizes& s) {
  LayoutBuilder layout;
  layout.add_linear("transform", s.hidden, s.hidden).add_norm("ln", s.hidden).add("output.bias", {s.vocabulary});
  if (!s.tied) layout.add("output.weight", {s.vocabulary, s.hidden});
  return layout.build();
}

// The transform before the decoder: a linear layer, gelu, norm.
std::vector<Kernel> transform_forward_kernels(const Sizes& s) {
  std::vector<Kernel> kernels = {gemm(s.tokens(), s.hidden, s.hidden, s.type), memory_kernel(2 * s.rows(s.hidden))};
  append(kernels, norm_forward_kernels(s));
  return kernels;
}

std::vector<Kernel> transform_backward_kernels(const Sizes& s) {
  const std::int64_t c = s.hidden;
  auto kernels = norm_backward_kernels(s);
  append(kernels, {memory_kernel(3 * s.rows(c)), gemm(s.tokens(), c, c, s.type), gemm(c, c, s.tokens(), s.type),
                   memory_kernel(s.rows(c))});
  return kernels;
}

void meter_transform_backward(WorkspaceMeter& meter, const Sizes& s, bool accumulates) {
  meter_norm_backward(meter, s);
  touch_linear_gradient(meter, s, s.hidden, s.hidden, accumulates);
}

OpSpec head_forward(const Sizes& s) {
  auto kernels = transform_forward_kernels(s);
  append(kernels, decoder_forward_kernels(s));
  WorkspaceMeter meter;
  touch_norm_forward(meter, s);
  meter_decoder_forward(meter, s);
  return spec_of(s, "bert.head.forward", std::move(kernels), meter.peak());
}

OpSpec head_backward(const Sizes& s, bool accumulates) {
  auto kernels = decoder_backward_kernels(s, accumulates);
  append(kernels, {memory_kernel(s.rows(s.vocabulary))});  // output bias
  append(kernels, transform_backward_kernels(s));
  WorkspaceMeter meter;
  meter_decoder_backward(meter, s, accumulates);
  meter_transform_backward(meter, s, accumulates);
  return spec_of(s, "bert.head.backward", std::move(kernels), meter.peak(), accumulates);
}

void add_whole_head(TrainingPlan& plan, StageSpec& stage, const Sizes& s) {
  stage.saved.push_back({"ln", s.type, s.rows(s.hidden)});
  add_loss(stage, s);
  stage.forward = plan.add(head_forward(s));
  stage.backward = plan.add(head_backward(s, false));
  stage.backward_accumulate = plan.add(head_backward(s, true));
}

OpSpec tiled_forward(const Sizes& s, const char* body, bool gradients) {
  auto kernels = transform_forward_kernels(s);
  append(kernels, tiled_decoder_kernels(s, gradients, /*bias=*/true));
  WorkspaceMeter meter;
  if (!gradients) meter.take(s.rows(s.hidden)), meter.take(s.rows(s.hidden));          // linear layer, gelu
  meter.take(s.rows(s.hidden)), meter.take(s.statistic()), meter.take(s.statistic());  // the norm
  meter_tiled_decoder(meter, s, gradients);
  return spec_of(s, body, std::move(kernels), meter.peak());
}

OpSpec tiled_backward(const Sizes& s, bool accumulates) {
  auto kernels = hand_on_kernels(s, accumulates);
  append(kernels, {memory_kernel((accumulates ? 3 : 2) * s.vocabulary * size_of(s.type))});  // output bias
  append(kernels, transform_backward_kernels(s));
  WorkspaceMeter meter;
  meter_transform_backward(meter, s, accumulates);
  return spec_of(s, "bert.tiled_head.backward", std::move(kernels), meter.peak(), accumulates);
}

void add_tiled_head(TrainingPlan& plan, StageSpec& stage, const Sizes& s) {
  add_tiled_loss(stage, s, /*bias=*/true);
  stage.forward = plan.add(tiled_forward(s, "bert.tiled_head.forward", /*gradients=*/true));
  stage.forward_light = plan.add(tiled_forward(s, "bert.tiled_head.forward_light", /*gradients=*/false));
  stage.backward = plan.add(tiled_backward(s, false));
  stage.backward_accumulate = plan.add(tiled_backward(s, true));
}

StageSpec head_stage(TrainingPlan& plan, const Sizes& s) {
  StageSpec stage;
  stage.name = "head";
  stage.layout = head_layout(s);
  stage.elements = stage.layout->elements;
  stage.saved = {{"transform", s.type, s.rows(s.hidden)},
                 {"gelu", s.type, s.rows(s.hidden)},
                 {"ln_mean", DType::F32, s.statistic()},
                 {"ln_rstd", DType::F32, s.statistic()}};
  stage.saves_input = true;
  s.loss_tiles > 1 ? add_tiled_head(plan, stage, s) : add_whole_head(plan, stage, s);
  return stage;
}

}  // namespace

TrainingPlan bert_plan(const Scenario& scenario) {
  Sizes s = transformer_sizes(scenario);
  s.causal = false;
  TrainingPlan plan;
  plan.family = "bert";
  plan.precision = s.type;
  plan.batch = token_batch("bert.batch.load", s);
  plan.stages.push_back(embedding_stage(plan, s));
  const StageSpec block = block_stage(plan, s);
  for (std::int64_t i = 0; i < s.layers; ++i) {
    plan.stages.push_back(block);
    plan.stages.back().name = "block" + std::to_string(i);
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
