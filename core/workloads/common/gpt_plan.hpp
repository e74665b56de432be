// The plan of a GPT-2 style decoder, and the bucket layouts that decoding shares. Must not know steps or policies.
#pragma once

#include <memory>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "core/workloads/common/plan.hpp"
#include "core/workloads/common/transformer.hpp"

namespace tandem {

TrainingPlan gpt_plan(const Scenario& scenario);

// Work::sizes of every gpt body: batch, sequence, hidden, heads, vocabulary, micro_batches, tied, accumulates,
// loss_tiles, fused.
std::vector<std::int64_t> gpt_work_sizes(const TransformerSizes& s, bool accumulates);

std::shared_ptr<const Layout> gpt_embedding_layout(const TransformerSizes& sizes);
std::shared_ptr<const Layout> gpt_block_layout(const TransformerSizes& sizes);
std::shared_ptr<const Layout> gpt_final_layout(const TransformerSizes& sizes);

}  // namespace tandem
