// The decoder over the vocabulary and its cross entropy: the last part of gpt's and bert's heads. Must not know what
// comes before it.
#pragma once

#include <vector>

#include "core/workloads/common/plan.hpp"
#include "core/workloads/common/transformer.hpp"

namespace tandem {

// Inputs and targets of [batch, sequence] int64 tokens; `body` loads them.
BatchSpec token_batch(const char* body, const TransformerSizes& s);

// What cross entropy keeps: the log-probabilities (fp32 in every precision) and the number of targets that count.
void add_loss(StageSpec& stage, const TransformerSizes& s);

std::vector<Kernel> decoder_forward_kernels(const TransformerSizes& s);
std::vector<Kernel> decoder_backward_kernels(const TransformerSizes& s, bool accumulates);
void meter_decoder_forward(WorkspaceMeter& meter, const TransformerSizes& s);
// Follows the temporaries up to the gradient of the decoder's input, which it leaves held.
void meter_decoder_backward(WorkspaceMeter& meter, const TransformerSizes& s, bool accumulates);

}  // namespace tandem
