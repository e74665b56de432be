#include "core/workloads/common/transformer.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/formats/layout.hpp"
#include "core/graph/kernels.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/common/unfused_attention.hpp"

namespace tandem {

TransformerSizes transformer_sizes(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  require_size("layers", w.layers, kMostLayers);
  require_size("hidden", w.hidden, kMostSize);
  require_size("heads", w.heads, kMostSize);
  require_size("vocabulary", w.vocabulary, kMostVocabulary);
  require_size("sequence", w.sequence, kMostSize);
  require_option(w.hidden % w.heads == 0, "heads",
                 std::to_string(w.heads) + " does not divide hidden (" + std::to_string(w.hidden) + ")",
                 "allowed: a divisor of hidden");
  require_option(w.loss_tiles >= 1 && w.loss_tiles <= w.batch * w.sequence, "loss_tiles",
                 std::to_string(w.loss_tiles) + " is out of range",
                 "allowed: 1 to " + std::to_string(w.batch * w.sequence) + ", the tokens of a micro-batch");
  require_option(w.attention == "fused" || w.attention == "unfused", "attention",
                 "\"" + w.attention + "\" is not known", "allowed: fused, unfused");
  require_product("hidden", {w.hidden, w.hidden, 4});
  require_product("batch, sequence, hidden", {w.batch, w.sequence, w.hidden, 4});
  if (w.attention == "unfused") require_product("batch, heads, sequence", {w.batch, w.heads, w.sequence, w.sequence});
  require_product("batch, sequence, vocabulary", {w.batch, w.sequence, w.vocabulary});
  require_product("vocabulary, hidden", {w.vocabulary, w.hidden});
  TransformerSizes s;
  s.batch = w.batch, s.sequence = w.sequence, s.hidden = w.hidden, s.heads = w.heads, s.vocabulary = w.vocabulary;
  s.layers = w.layers, s.micro_batches = w.micro_batches;
  s.threads = body_threads(scenario);
  s.tied = w.tied_embedding;
  s.fused = w.attention == "fused";
  s.loss_tiles = w.loss_tiles;
  s.type = w.precision;
  s.gpu = scenario.machine.gpu;
  return s;
}

namespace {

// FlashAttention's backward, where results must not depend on the order of sums, adds up the query's gradient in so
// many parts that blocks of all sequences and heads fill the GPU's multiprocessors.
std::int64_t query_gradient_parts(const TransformerSizes& s) {
  const std::int64_t blocks = s.batch * s.heads;
  CHECK(blocks > 0, s.batch, s.heads);
  return (kMostGpuProcessors + blocks - 1) / blocks;
}

// One of three at a time: sorts and reductions beside the fused attention's backward; the latter with more parts; the
// sum of a bias's gradient.
std::int64_t gpu_temporaries(const TransformerSizes& s) {
  constexpr std::int64_t kMiB = 1 << 20;
  const std::int64_t part = s.fused ? s.tokens() * s.hidden * size_of(DType::F32) : 0;
  const std::int64_t sum =
      std::max(gpu_row_sum_bytes(s.tokens(), s.width()), gpu_row_sum_bytes(s.tokens(), s.vocabulary));
  return (s.fused ? 2 * s.logsumexp() : 0) +
         std::max({64 * kMiB + 2 * part, 32 * kMiB + query_gradient_parts(s) * part, 32 * kMiB + sum});
}

}  // namespace

// On the CPU, oneDNN copies both operands of a product in 16 bits where the processor has units that want them in an
// order of their own (AMX), and elsewhere a weight.
std::int64_t library_temporaries(const TransformerSizes& s) {
  constexpr std::int64_t kCpuBytes = 256 << 10;
  if (s.gpu) return gpu_temporaries(s);
  if (s.type == DType::F32) return 0;
  const std::int64_t widest = std::max({s.vocabulary, s.width(), 3 * s.hidden});
  return kCpuBytes + (widest * s.hidden + s.tokens() * s.width()) * size_of(s.type);
}

void add_block_linears(LayoutBuilder& layout, const TransformerSizes& s) {
  layout.add_linear("qkv", 3 * s.hidden, s.hidden)
      .add_linear("projection", s.hidden, s.hidden)
      .add_linear("up", s.width(), s.hidden)
      .add_linear("down", s.hidden, s.width());
}

std::vector<Kernel> norm_forward_kernels(const TransformerSizes& s) {
  return {row_kernel(s.tokens(), 2 * s.rows(s.hidden) + 2 * s.statistic())};
}

// Reads the gradient and the input, writes the input's gradient.
std::vector<Kernel> norm_backward_kernels(const TransformerSizes& s) {
  return {row_kernel(s.tokens(), 3 * s.rows(s.hidden) + 2 * s.statistic())};
}

std::vector<Kernel> attention_forward_kernels(const TransformerSizes& s) {
  if (!s.fused) return unfused_attention_forward_kernels(s);
  return {attention_forward(s.batch * s.heads, s.sequence, s.sequence, s.head_size(), s.type, s.causal)};
}

std::vector<Kernel> attention_backward_kernels(const TransformerSizes& s) {
  if (!s.fused) return unfused_attention_backward_kernels(s);
  return {attention_backward(s.batch * s.heads, s.sequence, s.sequence, s.head_size(), s.type, s.causal)};
}

std::vector<Kernel> block_forward_kernels(const TransformerSizes& s, bool with_down_projection) {
  const std::int64_t n = s.tokens(), c = s.hidden;
  const Kernel norm = norm_forward_kernels(s).front();
  const Kernel residual = memory_kernel(3 * s.rows(c));
  std::vector<Kernel> kernels = {norm, gemm(n, 3 * c, c, s.type)};
  append(kernels, attention_forward_kernels(s));
  append(kernels, {
                      gemm(n, c, c, s.type), residual, norm, gemm(n, s.width(), c, s.type),
                      memory_kernel(2 * s.rows(s.width())),  // gelu
                  });
  if (with_down_projection) {
    kernels.push_back(gemm(n, c, s.width(), s.type));
    kernels.push_back(residual);
  }
  return kernels;
}

namespace {

// Backward of one linear layer: input's gradient, weight's gradient, bias's gradient, and adding them up.
void add_linear_backward(std::vector<Kernel>& kernels, const TransformerSizes& s, std::int64_t outputs,
                         std::int64_t inputs, bool accumulates) {
  kernels.push_back(gemm(s.tokens(), inputs, outputs, s.type));
  kernels.push_back(gemm(outputs, inputs, s.tokens(), s.type));
  kernels.push_back(row_kernel(s.tokens(), s.rows(outputs)));
  if (accumulates) kernels.push_back(memory_kernel(3 * outputs * inputs * size_of(s.type)));
}

}  // namespace

std::vector<Kernel> block_backward_kernels(const TransformerSizes& s, bool accumulates) {
  const std::int64_t c = s.hidden;
  const Kernel norm = norm_backward_kernels(s).front();
  const Kernel residual = memory_kernel(3 * s.rows(c));
  std::vector<Kernel> kernels;
  add_linear_backward(kernels, s, c, s.width(), accumulates);
  kernels.push_back(memory_kernel(3 * s.rows(s.width())));  // gelu
  add_linear_backward(kernels, s, s.width(), c, accumulates);
  kernels.push_back(norm);
  kernels.push_back(residual);
  add_linear_backward(kernels, s, c, c, accumulates);
  append(kernels, attention_backward_kernels(s));
  kernels.push_back(memory_kernel(2 * s.rows(3 * c)));  // joins the gradients of query, key and value
  add_linear_backward(kernels, s, 3 * c, c, accumulates);
  kernels.push_back(norm);
  kernels.push_back(residual);
  return kernels;
}

namespace {

// How LibTorch's fused CPU attention splits queries (by their number) and keys.
std::int64_t query_split(std::int64_t queries) {
  const std::int64_t split = queries >= 768 ? 256 : queries >= 192 ? 64 : 32;
  return std::min(split, queries);
}
std::int64_t key_split(std::int64_t keys) { return std::min<std::int64_t>(512, keys); }

}  // namespace

void touch_norm_forward(WorkspaceMeter& meter, const TransformerSizes& s) {
  meter.touch_all({s.rows(s.hidden), s.statistic(), s.statistic()});
}

void touch_attention_forward(WorkspaceMeter& meter, const TransformerSizes& s, std::int64_t keys) {
  CHECK(s.fused && keys >= s.sequence, "a token attends to itself and those before it", keys, s.sequence);
  const std::int64_t q = query_split(s.sequence), k = key_split(keys);
  const std::int64_t tiles = s.threads * (q * k + 2 * q + q * s.head_size()) * size_of(DType::F32);
  meter.touch_all({s.rows(s.hidden), s.logsumexp(), tiles});
}

void touch_attention(WorkspaceMeter& meter, const TransformerSizes& s, bool saves) {
  s.fused ? touch_attention_forward(meter, s, s.sequence) : touch_unfused_attention(meter, s, saves);
}

TensorSpec attention_saved(const TransformerSizes& s) {
  if (s.fused) return {"logsumexp", DType::F32, s.logsumexp()};
  return {"attention_probabilities", s.type, s.scores()};
}

void touch_gradient(WorkspaceMeter& meter, const TransformerSizes& s, std::int64_t elements, bool accumulates) {
  if (accumulates) meter.touch(elements * size_of(s.type));
}

void touch_linear_gradient(WorkspaceMeter& meter, const TransformerSizes& s, std::int64_t outputs, std::int64_t inputs,
                           bool accumulates) {
  touch_gradient(meter, s, outputs * inputs, accumulates);
  touch_gradient(meter, s, outputs, accumulates);
}

// The kernel sums the parameters' gradients one thread each, then over threads.
std::int64_t meter_norm_backward(WorkspaceMeter& meter, const TransformerSizes& s) {
  const std::int64_t parameter = s.hidden * size_of(s.type);
  const std::int64_t input = meter.take(s.rows(s.hidden));
  meter.touch_all({parameter, parameter, 2 * s.threads * s.hidden * size_of(DType::F32)});
  return input;
}

void touch_attention_backward(WorkspaceMeter& meter, const TransformerSizes& s) {
  if (!s.fused) return touch_unfused_attention_backward(meter, s);
  const std::int64_t row = s.rows(s.hidden);
  const std::int64_t q = query_split(s.sequence), k = key_split(s.sequence);
  const std::int64_t parts[] = {meter.take(row), meter.take(row), meter.take(row)};
  const auto tiles = meter.take(s.threads * 2 * q * k * size_of(DType::F32));  // scores and their gradient
  meter.touch(q * size_of(DType::F32));                                        // one sum a row
  meter.drop(tiles);
  for (const std::int64_t part : parts) meter.drop(part);
}

std::int64_t meter_attention_backward(WorkspaceMeter& meter, const TransformerSizes& s, bool accumulates) {
  const auto qkv = meter.take(3 * s.rows(s.hidden));
  const auto attention = meter.take(s.rows(s.hidden));
  touch_linear_gradient(meter, s, s.hidden, s.hidden, accumulates);
  touch_attention_backward(meter, s);
  meter.drop(attention);
  touch_linear_gradient(meter, s, 3 * s.hidden, s.hidden, accumulates);
  return qkv;
}

}  // namespace tandem
