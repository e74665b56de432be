// Data parallel: each rank trains on batches of its own, and all take the mean of their gradients.
//
//   all_reduce          reads  gradients of the rank; writes the means, in their places. Work::sizes: elements of all
//   of
//                       them, ranks, [those on one host]
//
// Gradients are gathered into buckets as PyTorch's DistributedDataParallel has it (Li et al., VLDB 2020, section 3.2):
// in the order in which the backward finishes them, so many that together they have the bytes that the scenario says. A
// bucket's one all-reduce begins when the last of them is there, and the rest of the backward overlaps it.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/scenario/ranks.hpp"
#include "core/step/context.hpp"
#include "core/transforms/common/entry.hpp"

namespace tandem {
namespace {

constexpr const char* kBucket = "bucket";

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

void AllReduce::add(Graph&) {
  all_ = 0;
  for (std::size_t i = 0; i < context_.stage_count(); ++i)
    all_ += context_.trains(i) && context_.goes_backward(i) && adds(i);
}

// A bucket's norms are taken when the next one is full, not at once: the compute lane, which is in order, would wait
// for the all-reduce.
void AllReduce::reduce(Graph& graph, std::size_t index) {
  if (!adds(index)) return;
  bucket_.push_back(index);
  elements_ += context_.spec(index).elements;
  const bool last = ++in_step_ == all_;
  std::vector<std::size_t>& final = context_.final_gradients;
  final.clear();
  if (!last && elements_ * size_of(context_.plan().precision) < bucket_bytes_) return;
  reduce_bucket(graph);
  final = std::exchange(reduced_, std::exchange(bucket_, {}));
  elements_ = 0;
  if (!last && bucket_bytes_ > 0) return;
  final.insert(final.end(), reduced_.begin(), reduced_.end());
  reduced_.clear();
  if (last) in_step_ = 0, bucket_number_ = 0;
}

void AllReduce::reduce_bucket(Graph& graph) {
  const std::size_t last = bucket_.back();
  const std::string name = bucket_bytes_ > 0 ? kBucket + std::to_string(bucket_number_++) : context_.spec(last).name;
  Op op = context_.collective(graph, graph.intern(name + ".all_reduce"), work(graph, elements_), Phase::Reduce, last);
  for (const std::size_t index : bucket_) {
    StepStage& stage = context_.stages[index];
    const ValueId local = stage.gradient_value;
    op.reads.push_back(local);
    stage.gradient_value = graph.new_version(stage.gradient);
    op.writes.push_back({stage.gradient_value, local});
  }
  graph.append(std::move(op));
}

WorkId AllReduce::work(Graph& graph, std::int64_t elements) {
  const DType type = context_.plan().precision;
  const auto [found, fresh] = works_.try_emplace(elements, kNone);
  if (fresh)
    found->second = graph.add_work({"all_reduce",
                                    type,
                                    context_.options.collective_sizes(elements),
                                    {memory_kernel(2 * elements * size_of(type))}});
  return found->second;
}

class DataParallel final : public Rewrite {
 public:
  explicit DataParallel(std::int64_t bucket_bytes) : bucket_bytes_(bucket_bytes) {}
  std::string_view name() const override { return "data"; }
  Order order() const override { return Order::Ranks; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<AllReduce>(context, bucket_bytes_);
  }

 private:
  std::int64_t bucket_bytes_;
};

std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites&) {
  const WorkloadOptions& w = scenario.workload;
  const std::int64_t bucket_bytes = w.parallel.integer_or(kBucket, 0);
  if (bucket_bytes > 0 && w.partition != "none")
    throw ConfigError(
        "parallel.bucket: ranks that divide states reduce each layer by itself, into parts; allowed: none, or "
        "workload.partition: none");
  const bool adds_up = w.devices * sequence_ranks(scenario) > 1 && server_count(scenario) == 0;
  return adds_up && w.partition == "none" ? std::make_shared<DataParallel>(bucket_bytes) : nullptr;
}

std::vector<FamilyKey> keys() {
  FamilyKey bucket = bytes_key(kBucket,
                               "Bytes of gradients that one all-reduce has at least: those of several layers, in the "
                               "order in which the backward finishes them, as PyTorch's DistributedDataParallel does "
                               "with 25MiB. The rest of the backward overlaps it. By default each layer has its own.");
  bucket.required = false;
  return {bucket};
}
const std::vector<FamilyKey> kKeys = keys();

}  // namespace
}  // namespace tandem

TANDEM_TRANSFORM(data, of_scenario,
                 "Data parallel: ranks with batches of their own, and an all-reduce of the gradients, in buckets",
                 "workload.devices: N, parallel.bucket", &kKeys)
