#include "runtime/bodies/common/embedding.hpp"

#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/index_select.h>

namespace tandem {

void embed_out(const at::Tensor& out, const at::Tensor& tokens, const Bucket& parameters) {
  const at::Tensor wte = parameters["wte"];
  at::Tensor rows = out.view({-1, wte.size(1)});
  at::index_select_out(rows, wte, 0, tokens);
  out.add_(parameters["wpe"]);
}

void embed_at(const at::Tensor& out, const at::Tensor& tokens, const Bucket& parameters, std::int64_t position) {
  const at::Tensor wte = parameters["wte"];
  at::Tensor rows = out;
  at::index_select_out(rows, wte, 0, tokens);
  out.add_(parameters["wpe"].slice(0, position, position + tokens.size(0)));
}

// The order of sums is autograd's: the output layer's part and the lookup's part, then, once, the earlier
// micro-batches.
void embed_backward(const Gradients& gradients, const at::Tensor& grad, const at::Tensor& tokens,
                    std::int64_t vocabulary, const at::Tensor& tied) {
  {
    at::Tensor wte = at::embedding_dense_backward(grad, tokens, vocabulary, /*padding_idx=*/-1,
                                                  /*scale_grad_by_freq=*/false);
    if (tied.defined()) wte.add_(tied);
    gradients.add("wte", wte);
  }
  gradients.row_sum("wpe", grad);
}

}  // namespace tandem
