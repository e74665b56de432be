// What follows from a module's program: the passes over it, what they keep, and where each value of them lies. Must not
// know networks, steps or LibTorch, which walks a pass (runtime/primitives).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/model/module.hpp"

namespace tandem {

struct GivenPass;  // core/model/opaque.hpp

// What an op that performs a pass reads or writes.
enum class OperandKind : std::uint8_t {
  Input,           // of the module, by port
  Output,          // likewise
  Carried,         // by place in Module::carried: read, and written in place
  Kept,            // by place in Passes::kept
  Weights,         // the module's bucket of those that are trained
  FrozenWeights,   // and of those that are not
  OutputGradient,  // by port
  InputGradient,   // likewise
  WeightGradient,  // the bucket of the gradient
  Contribution,    // to a weight's gradient, from modules that share it; by place of the weight
  Handed           // by place in Passes::handed
};
struct Operand {
  OperandKind kind = OperandKind::Input;
  std::int32_t index = 0;
  // Its place among the op's reads, or writes: given by who builds the op.
  std::int32_t read = kNone, write = kNone;
  std::int32_t field = kNone;  // of that, a bucket of another module's weights
  bool is(OperandKind k, std::int32_t i) const { return kind == k && index == i; }
};

// Where values lie, one after another: an operand's, or a range of the workspace.
struct Storage {
  std::int32_t operand = kNone;  // place in Pass::operands; kNone: in the workspace
  std::int64_t offset = 0, bytes = 0;
};

// What becomes of a gradient that a call computes.
struct GradientTarget {
  enum class Mode : std::uint8_t {
    None,     // nobody wants it
    Write,    // it is the first
    Add,      // to what is there
    AddBase,  // the target becomes the sum of it and of `base`, which is no call's to write
    Alias     // it is the output's gradient, as it lies
  };
  Mode mode = Mode::None;
  std::int32_t storage = kNone, base = kNone;
};

struct PassCall {
  const Call* call = nullptr;
  Direction direction = Direction::Forward;
  Wanted wanted;
  std::vector<std::int32_t> in, out, saved;  // storages; kNone: not there in this pass
  std::int32_t output_gradient = kNone;
  std::vector<GradientTarget> input_gradients;
  std::vector<std::int32_t> contributions;  // storages, by weight
  std::int64_t scratch_offset = 0, scratch_bytes = 0;
};

struct Pass {
  std::shared_ptr<const Module> module;  // owns the calls
  std::vector<Operand> operands;
  std::vector<Storage> storages;
  std::vector<PassCall> calls;
  std::vector<Kernel> kernels;
  std::int64_t workspace_bytes = 0;
  std::shared_ptr<const GivenPass> given;  // instead of calls and storages
  std::int64_t micro_batches = 1;          // whose gradients are summed: each loss counts as so much less
  bool has_loss() const;
  bool has_result() const;  // a loss, or a choice
  // The loss's gradient is made here, not in the backward.
  bool makes_gradients() const;
  bool draws_random() const;
  // Null: the pass has no such operand.
  const Operand* find(OperandKind kind) const;
};

// A value that backward reads, each storage once: "qkv", or what a call keeps beside its output, "ln1_mean".
struct Kept {
  std::string name;
  Shape shape;
  bool lossy = false;  // Primitive::lossy() of all that read it
};

struct Passes {
  std::vector<Kept> kept;
  Bits keeps_inputs = 0, keeps_outputs = 0;  // ports that backward reads
  bool backward_reads_weights = false, backward_reads_frozen = false;
  Pass forward, forward_light, recompute, backward, backward_accumulate;
  // The backward in two: gradients of inputs, which hands on those that weights' gradients are made of, and later
  // those of weights, the first micro-batch's or added to what is there.
  std::vector<Kept> handed;
  Pass backward_inputs, backward_weights, backward_weights_accumulate;
};

struct DeriveOptions {
  Bits input_gradients = 0;   // ports whose gradient is wanted
  Bits gradients_so_far = 0;  // of those: it is added to what later readers of the value made
  Bits contributed = 0;       // weights that other modules read, too, and contribute a gradient to
  RunsOn where;
};
Passes derive(const std::shared_ptr<const Module>& module, const DeriveOptions& options);

}  // namespace tandem
