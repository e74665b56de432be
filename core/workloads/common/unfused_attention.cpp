#include "core/workloads/common/unfused_attention.hpp"

#include "core/base/check.hpp"
#include "core/formats/layout.hpp"
#include "core/graph/kernels.hpp"

namespace tandem {
namespace {

// Heads of a [tokens, hidden] tensor one after another, or back.
Kernel copy_of_rows(const TransformerSizes& s) { return memory_kernel(2 * s.rows(s.hidden)); }

// Between the scores' shape and that of a head's rows, for each sequence and head.
Kernel product(const TransformerSizes& s, std::int64_t columns, std::int64_t inner) {
  return batched_gemm(s.batch * s.heads, s.sequence, columns, inner, s.type);
}

}  // namespace

std::vector<Kernel> unfused_attention_forward_kernels(const TransformerSizes& s) {
  CHECK(s.hidden % s.heads == 0, "heads of unequal size", s.hidden, s.heads);
  std::vector<Kernel> kernels = {copy_of_rows(s), copy_of_rows(s), product(s, s.sequence, s.head_size())};
  if (s.causal) {
    kernels.push_back(memory_kernel(2 * s.sequence * s.sequence));  // the mask, a byte each
    kernels.push_back(memory_kernel(2 * s.scores()));
  }
  kernels.push_back(memory_kernel(2 * s.scores()));  // softmax
  kernels.push_back(copy_of_rows(s));
  kernels.push_back(product(s, s.head_size(), s.sequence));
  kernels.push_back(copy_of_rows(s));
  return kernels;
}

// Without the copies that join the gradients of query, key and value.
std::vector<Kernel> unfused_attention_backward_kernels(const TransformerSizes& s) {
  const Kernel copy = copy_of_rows(s), scale = copy, narrow = product(s, s.head_size(), s.sequence);
  return {copy,
          narrow,  // the value's gradient
          copy,
          product(s, s.sequence, s.head_size()),  // the softmax's
          memory_kernel(3 * s.scores()),          // the scores'
          copy,
          narrow,
          scale,  // the query's
          copy,
          narrow,
          scale};  // the key's
}

void touch_unfused_attention(WorkspaceMeter& meter, const TransformerSizes& s, bool saves) {
  const std::int64_t row = s.rows(s.hidden);
  std::vector<std::int64_t> results;
  if (!saves) results = {meter.take(row), meter.take(s.scores())};
  const auto scores = meter.take(s.scores());
  meter.touch_all({row, row});  // query and key
  meter.touch(s.sequence * s.sequence);
  meter.drop(scores);
  meter.touch_all({row, row});  // value and product
  for (const std::int64_t result : results) meter.drop(result);
}

void touch_unfused_attention_backward(WorkspaceMeter& meter, const TransformerSizes& s) {
  const std::int64_t row = s.rows(s.hidden);
  const auto scores = meter.take(s.scores());
  const auto output = meter.take(row);
  meter.touch(row);  // the value's gradient
  const auto probabilities = meter.take(s.scores());
  meter.touch(row);  // value
  meter.drop(probabilities);
  meter.drop(output);
  meter.touch_all({row, row});  // key and the query's gradient; query and the key's
  meter.drop(scores);
}

}  // namespace tandem
