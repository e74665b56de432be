#include "core/workloads/common/language_head.hpp"

#include "core/graph/kernels.hpp"

namespace tandem {
namespace {

std::int64_t log_probability_bytes(const TransformerSizes& s) {
  return s.tokens() * s.vocabulary * size_of(DType::F32);
}

// Logits in 16 bits made fp32, for the loss.
std::vector<Kernel> widening_kernels(const TransformerSizes& s) {
  if (s.type == DType::F32) return {};
  return {memory_kernel(s.rows(s.vocabulary) + log_probability_bytes(s))};
}

}  // namespace

BatchSpec token_batch(const char* body, const TransformerSizes& s) {
  BatchSpec batch;
  batch.input_bytes = batch.target_bytes = s.tokens() * size_of(DType::I64);
  batch.load = {body, DType::I64, {s.batch, s.sequence, s.vocabulary}, {memory_kernel(2 * batch.input_bytes)}};
  return batch;
}

void add_loss(StageSpec& stage, const TransformerSizes& s) {
  stage.saved.push_back({"log_probabilities", DType::F32, log_probability_bytes(s)});
  stage.saved.push_back({"target_count", DType::F32, size_of(DType::F32)});
  stage.reads_targets = stage.backward_reads_targets = true;
  stage.has_loss = true;
}

std::vector<Kernel> decoder_forward_kernels(const TransformerSizes& s) {
  std::vector<Kernel> kernels = {gemm(s.tokens(), s.vocabulary, s.hidden, s.type)};
  append(kernels, widening_kernels(s));
  kernels.push_back(softmax_kernel(s.tokens(), s.vocabulary, /*backward=*/false));
  kernels.push_back(memory_kernel(s.tokens() * size_of(DType::I64)));  // loss: one number a target
  return kernels;
}

std::vector<Kernel> decoder_backward_kernels(const TransformerSizes& s, bool accumulates) {
  const std::int64_t table = s.vocabulary * s.hidden * size_of(s.type);
  std::vector<Kernel> kernels = {memory_kernel(log_probability_bytes(s)),  // the loss's gradient, nearly all zeros
                                 softmax_kernel(s.tokens(), s.vocabulary, /*backward=*/true)};
  append(kernels, widening_kernels(s));  // the other way
  append(kernels, {gemm(s.tokens(), s.hidden, s.vocabulary, s.type), gemm(s.vocabulary, s.hidden, s.tokens(), s.type)});
  if (accumulates && !s.tied) kernels.push_back(memory_kernel(3 * table));
  return kernels;
}

void meter_decoder_forward(WorkspaceMeter& meter, const TransformerSizes& s) {
  meter.take(s.rows(s.vocabulary));                                                       // logits
  if (s.type != DType::F32) meter.take(s.tokens() * s.vocabulary * size_of(DType::F32));  // and in fp32, for the loss
  meter.take(size_of(DType::F32));                                                        // loss
}

void meter_decoder_backward(WorkspaceMeter& meter, const TransformerSizes& s, bool accumulates) {
  meter.take(s.rows(s.hidden));
  const auto logits = meter.take(s.rows(s.vocabulary));
  const auto one = meter.take(size_of(DType::F32));  // the loss's own gradient
  const auto picked = meter.take(log_probability_bytes(s));
  if (s.type != DType::F32) meter.touch(log_probability_bytes(s));  // the gradient in fp32, before it is rounded
  meter.drop(picked);
  meter.drop(one);
  // A tied weight's gradient is a value of its own.
  touch_gradient(meter, s, s.vocabulary * s.hidden, accumulates && !s.tied);
  meter.drop(logits);
}

}  // namespace tandem
