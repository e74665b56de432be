// Sizes, works and workspaces that the transformer families share. Must not know the order of steps.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/model/meter.hpp"
#include "core/scenario/scenario.hpp"
#include "core/workloads/common/plan.hpp"

namespace tandem {

struct TransformerSizes {
  std::int64_t batch = 1, sequence = 0, hidden = 0, heads = 0, vocabulary = 0, layers = 0, micro_batches = 1;
  std::int64_t threads = 1;
  std::int64_t loss_tiles = 1;
  bool tied = true;
  bool causal = true;  // a token attends to those before it alone
  bool fused = true;   // attention: no scores in memory
  bool gpu = false;
  DType type = DType::F32;

  std::int64_t tokens() const { return batch * sequence; }
  std::int64_t head_size() const { return hidden / heads; }
  std::int64_t width() const { return 4 * hidden; }  // of the feed-forward layer
  // Bytes of a [tokens, columns] tensor in the network's precision.
  std::int64_t rows(std::int64_t columns) const { return tokens() * columns * size_of(type); }
  // Bytes of one number a token, and of one a token and head, in fp32: statistics stay in fp32 in every precision.
  std::int64_t statistic() const { return tokens() * size_of(DType::F32); }
  std::int64_t logsumexp() const { return tokens() * heads * size_of(DType::F32); }
  // Bytes of the attention's scores, where it is not fused.
  std::int64_t scores() const { return tokens() * heads * sequence * size_of(type); }
};

// What kernels may take beyond the temporaries that a WorkspaceMeter follows, which are those of the CPU's in fp32. On
// a GPU: fused attention's sums of the query's gradient, products that are cut along their inner dimension, the sort of
// an embedding's gradient, partial sums of reductions, larger alignment. On a CPU in 16 bits: oneDNN's packed operands,
// a copy of an embedding's gradient.
std::int64_t library_temporaries(const TransformerSizes& sizes);

// Reads and checks the options; throws ConfigError.
TransformerSizes transformer_sizes(const Scenario& scenario);

// The attention and feed-forward weights of a block, without its norms.
void add_block_linears(class LayoutBuilder& layout, const TransformerSizes& sizes);

// Kernels of a block's forward and backward, in the order that the bodies launch them (both norm positions).
std::vector<Kernel> block_forward_kernels(const TransformerSizes& s, bool with_down_projection);
std::vector<Kernel> block_backward_kernels(const TransformerSizes& s, bool accumulates);
// Of attention alone; backward: without the copies that join the gradients of query, key and value.
std::vector<Kernel> attention_forward_kernels(const TransformerSizes& s);
std::vector<Kernel> attention_backward_kernels(const TransformerSizes& s);
std::vector<Kernel> norm_forward_kernels(const TransformerSizes& s);
std::vector<Kernel> norm_backward_kernels(const TransformerSizes& s);

// Follow what LibTorch's norm and fused attention allocate: their results, which bodies then copy to their places, and
// the attention's tiles, one a thread.
void touch_norm_forward(WorkspaceMeter& meter, const TransformerSizes& s);
// `keys`: rows that each query sees; the sequence in training, more in decoding.
void touch_attention_forward(WorkspaceMeter& meter, const TransformerSizes& s, std::int64_t keys);
// The same in training, of either kind of attention. `saves`: for a backward, to which an unfused one leaves its
// probabilities; without, these are temporaries.
void touch_attention(WorkspaceMeter& meter, const TransformerSizes& s, bool saves);
// What attention saves for its backward beside its output.
TensorSpec attention_saved(const TransformerSizes& s);

// The same for the pieces of a backward body. Gradients of matrices need temporaries only where they are added to
// earlier micro-batches' ones; the first micro-batch writes them in place.
void touch_gradient(WorkspaceMeter& meter, const TransformerSizes& s, std::int64_t elements, bool accumulates);
void touch_linear_gradient(WorkspaceMeter& meter, const TransformerSizes& s, std::int64_t outputs, std::int64_t inputs,
                           bool accumulates);
// Returns the offset of the input's gradient, still held.
std::int64_t meter_norm_backward(WorkspaceMeter& meter, const TransformerSizes& s);
// From the gradient of the attention's output to those of query, key and value, beside both.
void touch_attention_backward(WorkspaceMeter& meter, const TransformerSizes& s);
// From the gradient of the attention's projected output to that of query, key and value, whose offset it returns (still
// held), and the gradients of both linear layers.
std::int64_t meter_attention_backward(WorkspaceMeter& meter, const TransformerSizes& s, bool accumulates);

}  // namespace tandem
