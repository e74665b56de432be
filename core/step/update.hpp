// A stage's optimizer step: its work and workspace by the bucket's size, and what it reads and writes. Must not know
// how gradients came to be.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/step/context.hpp"

namespace tandem {

// "adamw", or with quantised states "adamw_8bit": bodies of their own, as they cost something else.
std::string name_with_states(const OptimizerOptions& optimizer);
// Of an update in fp32 by LibTorch's kernel, or one of whole fields.
std::int64_t optimizer_workspace(const StepContext& context, const Layout& layout);

class UpdatePart {
 public:
  explicit UpdatePart(StepContext& context) : context_(context) {}
  void add_stage(Graph& graph, std::size_t index);
  void optimize(Graph& graph, std::size_t index);

 private:
  void add_bucket_works(Graph& graph, const StageSpec& s, StepStage& stage);

  StepContext& context_;
  std::map<std::pair<std::int64_t, std::int64_t>, WorkId> works_;  // by elements, and parts
};

}  // namespace tandem
