// A step's batches: their tensors, and the ops that fill them, of training data or of data that is held out. Must not
// know what reads them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/step/context.hpp"

namespace tandem {

class BatchPart {
 public:
  // `prefix`: of its tensors' names, where there are several.
  explicit BatchPart(const StepContext& context, std::string prefix = "")
      : context_(context), prefix_(std::move(prefix)) {}
  void add(Graph& graph);
  void load(Graph& graph) { load(graph, /*held_out=*/false); }
  void load_held_out(Graph& graph) { load(graph, /*held_out=*/true); }
  ValueId value(std::size_t index) const { return values_[index]; }
  // What another op made takes the place of what was loaded, or comes behind it.
  void give(std::size_t index, ValueId value) {
    if (index >= values_.size()) values_.resize(index + 1, kNone);
    values_[index] = value;
  }

 private:
  // An op of the batch: of training data, and of data that is held out.
  struct Filling {
    InputSpec spec;
    WorkId works[2] = {kNone, kNone};
    std::int32_t labels[2] = {kNone, kNone};
  };
  void add_filling(Graph& graph, InputSpec spec);
  void load(Graph& graph, bool held_out);
  Op op_of(const Filling& filling, bool held_out) const;

  const StepContext& context_;
  std::string prefix_;
  std::vector<TensorId> tensors_;
  std::vector<ValueId> values_;
  std::vector<Filling> fillings_;
};

}  // namespace tandem
