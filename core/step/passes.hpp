// Forward, recompute and backward of every stage, topologically over a network of any shape: activations and their
// gradients, which exist within a step. Must not know why a stage is recomputed, nor what becomes of gradients.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/step/batch.hpp"
#include "core/step/context.hpp"

namespace tandem {

class PassesPart {
 public:
  // `prefix`: of its tensors' names, where there are several.
  PassesPart(StepContext& context, const BatchPart& batch, std::string prefix = "")
      : context_(context), batch_(batch), prefix_(std::move(prefix)) {}
  // Of the plan in hand, in the place of those that were there.
  void add_works(Graph& graph);
  // Those that are there: their ops are over.
  void forget_works(Graph& graph);
  // Those of another part, which has the same plan.
  void share_works(const PassesPart& part) { works_ = part.works_; }
  void add_stage(Graph& graph, std::size_t index);

  // Stages [first, end) of those that were added; or all of them.
  void forward(Graph& graph, std::size_t first, std::size_t end);
  void forward(Graph& graph) { forward(graph, 0, stages_.size()); }
  // With the parameters that the next forward would use, keeping nothing: what a stage without a light forward saves
  // dies as it is written.
  void evaluate(Graph& graph);
  // What a segment saves, from its first input on; the last output is of no use any more.
  void recompute(Graph& graph, std::size_t first, std::size_t last);
  // One stage, which goes backward. Of one that is trained, its gradient is StepStage::gradient_value then.
  void backward(Graph& graph, std::size_t index);
  // Half of that. Gradients of weights come after those of inputs, of later stages first.
  void backward_inputs(Graph& graph, std::size_t index);
  void backward_weights(Graph& graph, std::size_t index);
  // The version in hand.
  ValueId output(std::size_t stage, std::size_t place) const { return stages_[stage].output_values[place]; }
  // What an earlier step's part made stands for it in this step.
  void give_output(std::size_t stage, std::size_t place, ValueId value) { stages_[stage].output_values[place] = value; }
  // Of what a stage saves, the version in hand, which its next backward reads: a transform may put another in its
  // place.
  ValueId& saved(std::size_t stage, std::size_t place) { return stages_[stage].saved_values[place]; }

 private:
  struct Labels {
    std::int32_t forward, recompute, backward, evaluate, backward_inputs, backward_weights;
  };
  // The tensors of a stage, and their versions in hand.
  struct Stage {
    Labels labels{};
    TensorId contribution = kNone;
    TensorId received = kNone;  // a bucket's parameter, of another rank
    // Of a ring's round before the last one, that one's stage: its output, and what it saved, is what backward reads.
    std::int32_t result = kNone;
    std::vector<TensorId> saved, outputs, output_gradients, handed;
    ValueId contribution_value = kNone;
    std::vector<ValueId> saved_values, output_values, output_gradient_values, handed_values;
  };
  Op op_of(std::int32_t label, OpSpecIndex op_spec, Phase phase, std::size_t index) const;
  void add_received(Graph& graph, std::size_t index);
  void write_received(Graph& graph, std::size_t index, Op& op);
  void append_forward(Graph& graph, std::size_t index, Op op, bool writes_output, bool saves);
  void gather_again(Graph& graph, std::size_t index);
  void send_back(Graph& graph, std::size_t index);
  bool hands_on(std::size_t index, const PortSpec& port) const;
  void hand_gradients_on(std::size_t index);
  const Stage& result_of(const Stage& stage) const {
    return stage.result == kNone ? stage : stages_[static_cast<std::size_t>(stage.result)];
  }
  ValueId written_over(const Graph& graph, std::size_t index, const Op& op, ValueId output) const;
  ValueId value_of(const PortSpec& port) const;
  void read_forward_operands(std::size_t index, Op& op) const;
  void read_backward_operands(std::size_t index, Op& op) const;
  void write_gradients(Graph& graph, std::size_t index, PortSpec::From from, Op& op);
  void write_gradient(Graph& graph, const PortSpec& port, Op& op);
  void write_weight_gradient(Graph& graph, std::size_t index, Op& op);
  // Of a stage that computes nothing backward. Whether it is one.
  bool passes_gradient_on(std::size_t index);
  void backward_half(Graph& graph, std::size_t index, const BackwardHalf& half, std::int32_t label);
  ValueId read_by_half(std::size_t index, const HalfOperand& operand) const;
  void write_by_half(Graph& graph, std::size_t index, const HalfOperand& operand, Op& op);
  ValueId& gradient_of(const PortSpec& port);
  bool adds_gradient(std::size_t index) const;

  StepContext& context_;
  const BatchPart& batch_;
  std::string prefix_;
  std::vector<WorkId> works_;  // by OpSpecIndex
  std::vector<Stage> stages_;
};

}  // namespace tandem
