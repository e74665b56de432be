// The mean over ranks of a gradient, or of Adam's momentum, that ranks send to each other compressed: each rank takes
// one part of it from all, and gives the part's mean to all, compressed again. What either compression drops is kept,
// and added to what is compressed next (Tang et al., ICML 2021, algorithm 1). Must not know which steps do so.
//
//   compressed.load     writes what is kept, of a rank and of its part's mean: nothing so far
//   compressed.gradient reads  gradient, [kept]; writes its code, [kept]
//   compressed.momentum reads  gradient, m, [kept]; writes the code of what m becomes, [kept]
//   all_to_all          reads  a code, in a part for each rank; writes the parts of all ranks that are this one's.
//                       Work::sizes: bytes, ranks, [those on one host]
//   compressed.mean     reads  these parts, [kept]; writes the code of their mean, [kept]
//   all_gather          reads  the part's; writes all parts'. Work::sizes: as of all_to_all
//   compressed.decode   reads  that; writes the gradient, or m
// Work::sizes of the others: elements that are there, ranks, kind of the code (SentCode::Kind), its block.
#pragma once

#include <map>
#include <vector>

#include "core/step/context.hpp"
#include "core/transforms/common/sent_gradients.hpp"

namespace tandem {

class CompressedMean {
 public:
  CompressedMean(StepContext& context, const SentGradients& sent)
      : context_(context), sent_(sent), stages_(context.stage_count()) {}
  // Of a stage: tensors and works; and what is kept, in the prologue.
  void add_stage(Graph& graph, std::size_t index);
  void load(Graph& graph, std::size_t index);
  // One after another, each when the one before may be over: computing waits for it. `momentum`: Adam's, whose new
  // values are `gradient`'s and its own; none: the gradient alone.
  void send(Graph& graph, std::size_t index, TensorId momentum);
  void take_mean(Graph& graph, std::size_t index);
  // A new version of the tensor, of the stage's gradient or of its momentum.
  ValueId decode(Graph& graph, std::size_t index, TensorId to);

 private:
  struct Works {
    WorkId load = kNone, gradient = kNone, momentum = kNone, to_all = kNone, mean = kNone, gather = kNone,
           decode = kNone;
  };
  struct Stage {
    TensorId sent = kNone, received = kNone, mean = kNone, gathered = kNone;  // codes
    TensorId kept = kNone, kept_of_mean = kNone;
    std::int64_t bytes = 0;  // of a whole code
    Works works;
  };
  Works add_works(Graph& graph, std::size_t index) const;
  void keep(Graph& graph, Op& op, TensorId kept) const;
  Op op(Graph& graph, std::size_t index, const char* name, WorkId work) const;
  void exchange(Graph& graph, std::size_t index, const char* name, WorkId work, TensorId from, TensorId to);

  StepContext& context_;
  const SentGradients sent_;
  std::vector<Stage> stages_;
  std::map<std::int64_t, Works> works_;  // by elements
};

}  // namespace tandem
