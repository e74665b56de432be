// All-reduces of gradients among the ranks that add them up, each layer's own or several in a bucket. Must not know who
// asks for them.
//
//   all_reduce          reads  gradients of the rank; writes the means, in their places. Work::sizes: elements of all
//   of
//                       them, ranks, [those on one host]
//
// Gradients are gathered into buckets as PyTorch's DistributedDataParallel has it (Li et al., VLDB 2020, section 3.2):
// in the order in which the backward finishes them, so many that together they have the bytes that the scenario says. A
// bucket's one all-reduce begins when the last of them is there, and the rest of the backward overlaps it.
#pragma once

#include <map>
#include <vector>

#include "core/step/context.hpp"

namespace tandem {

// Of plain data parallelism's buckets: the key, too.
inline constexpr const char* kBucket = "bucket";

class AllReduce final : public StepTransform {
 public:
  AllReduce(StepContext& context, std::int64_t bucket_bytes) : context_(context), bucket_bytes_(bucket_bytes) {}
  void add(Graph& graph) override;
  void reduce(Graph& graph, std::size_t index) override;

 private:
  // Experts' are not those of all ranks (expert/expert.cpp).
  bool adds(std::size_t index) const { return context_.spec(index).gradients != GradientRanks::Expert; }
  void reduce_bucket(Graph& graph);
  WorkId work(Graph& graph, std::int64_t elements);

  StepContext& context_;
  const std::int64_t bucket_bytes_;       // 0: each gradient is a bucket
  std::vector<std::size_t> bucket_;       // the stages whose gradients are in it
  std::int64_t elements_ = 0;             // of them
  std::vector<std::size_t> reduced_;      // the bucket before, whose norms are not taken yet
  std::size_t all_ = 0, in_step_ = 0;     // gradients of a step, and those of the one in hand so far
  std::int32_t bucket_number_ = 0;        // in the step
  std::map<std::int64_t, WorkId> works_;  // by elements
};

}  // namespace tandem
