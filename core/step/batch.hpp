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
  void load(Graph& graph) { append(graph, label_, work_); }
  void load_held_out(Graph& graph) { append(graph, held_out_label_, held_out_work_); }
  ValueId value(std::size_t index) const { return values_[index]; }
  // What another op made takes the place of what was loaded.
  void give(std::size_t index, ValueId value) { values_[index] = value; }

 private:
  void add_works(Graph& graph);
  void append(Graph& graph, std::int32_t label, WorkId work);

  const StepContext& context_;
  std::string prefix_;
  std::vector<TensorId> tensors_;
  std::vector<ValueId> values_;
  WorkId work_ = kNone, held_out_work_ = kNone;
  std::int32_t label_ = kNone, held_out_label_ = kNone;
};

}  // namespace tandem
