#include "core/transforms/common/all_reduce.hpp"

#include <string>
#include <utility>

#include "core/graph/kernels.hpp"

namespace tandem {

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

}  // namespace tandem
